package dev.gantry.formats.tfrecord;

import java.io.BufferedInputStream;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;

/// Refuses the headers of a GZIP file whose name and comment are too long: Commons Compress keeps
/// them on the heap, and RFC 1952 sets no limit.
///
/// It reads them byte by byte, and what is compressed in blocks, from a stream that can be set
/// back. So bytes that come one by one are a header's, and of the trailer before it.
final class GzipHeaderLimit extends FilterInputStream {
  /// Far more than any name of a file.
  static final int MOST_BYTES = 1 << 20;

  private int single;

  GzipHeaderLimit(InputStream compressed) {
    super(new BufferedInputStream(compressed));
  }

  @Override
  public int read() throws IOException {
    if (single == MOST_BYTES) {
      throw new IOException(
          "the name and the comment in a gzip header have more than " + MOST_BYTES + " bytes");
    }
    single++;
    return super.read();
  }

  @Override
  public int read(byte[] target, int offset, int length) throws IOException {
    single = 0;
    return super.read(target, offset, length);
  }
}
