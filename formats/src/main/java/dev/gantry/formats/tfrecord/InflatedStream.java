package dev.gantry.formats.tfrecord;

import dev.gantry.core.MisuseException;
import java.io.IOException;
import java.io.InputStream;
import java.util.zip.Inflater;
import java.util.zip.InflaterInputStream;
import org.apache.commons.compress.compressors.gzip.GzipCompressorInputStream;

/// A decompressor that says how much it has given, also where it has thrown then.
sealed interface InflatedStream extends AutoCloseable {
  /// @param compression not NONE
  /// @throws IOException if the bytes do not begin as they should
  static InflatedStream of(SourceFileStream compressed, Compression compression)
      throws IOException {
    return switch (compression) {
      case GZIP -> new Gzip(compressed);
      case ZLIB -> new Zlib(compressed);
      case NONE -> throw new MisuseException("nothing to decompress");
    };
  }

  /// Reads up to `wanted` bytes to the start of `target`.
  ///
  /// @return how many, or -1 at the end
  int read(byte[] target, int wanted) throws IOException;

  /// How many bytes were put into targets so far, by failed reads too.
  long given();

  @Override
  void close() throws IOException;

  /// One member or several. What follows the last one is refused, and so are names without end.
  final class Gzip implements InflatedStream {
    private final GzipCompressorInputStream stream;

    Gzip(SourceFileStream compressed) throws IOException {
      stream =
          GzipCompressorInputStream.builder()
              .setInputStream(new GzipHeaderLimit(compressed))
              .setDecompressConcatenated(true)
              .get();
    }

    @Override
    public int read(byte[] target, int wanted) throws IOException {
      return stream.read(target, 0, wanted);
    }

    @Override
    public long given() {
      return stream.getBytesRead();
    }

    @Override
    public void close() throws IOException {
      stream.close();
    }
  }

  /// The JDK's, of which alone one can ask whether something follows the stream's end: a second
  /// stream would be passed over in silence.
  final class Zlib implements InflatedStream {
    private final InputStream compressed;
    private final Inflater inflater = new Inflater();
    private final InflaterInputStream stream;

    Zlib(InputStream compressed) {
      this.compressed = compressed;
      stream = new InflaterInputStream(compressed, inflater, 8 << 10);
    }

    @Override
    public int read(byte[] target, int wanted) throws IOException {
      int count = stream.read(target, 0, wanted);
      if (count < 0 && (inflater.getRemaining() > 0 || compressed.read() >= 0)) {
        throw new IOException("bytes behind the end of the zlib stream");
      }
      return count;
    }

    @Override
    public long given() {
      return inflater.getBytesWritten();
    }

    @Override
    public void close() throws IOException {
      try (stream) {
        inflater.end();
      }
    }
  }
}
