package dev.gantry.formats.tfrecord;

import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.formats.internal.files.FileBytes;
import java.io.IOException;
import java.nio.file.Path;

/// Tells TFRecord files from others by their first bytes, whatever their names.
public final class TfRecordProbe {
  private TfRecordProbe() {}

  /// Whether a file begins with a record's header whose checksum is right, plain or in a gzip or
  /// zlib stream; or is such a stream of nothing. What comes after the header is not looked at. An
  /// empty file begins with nothing, though readers take it for one without records.
  ///
  /// @throws dev.gantry.core.TransferException if the file cannot be opened or read
  /// @throws dev.gantry.core.MalformedFileException of kind `not-a-regular-file`
  public static boolean beginsLikeOne(GantrySession session, Path file) {
    FileBytes.requireRegular(file);
    try (SourceFile source = session.openFile(Location.of(file))) {
      Compression compression = CompressionDetector.detect(source);
      ByteSource bytes =
          compression == Compression.NONE
              ? new PlainSource(source, 0)
              : new InflatedSource(source, compression);
      try (RecordWindow window = new RecordWindow(bytes, 0, TfRecordOptions.LEAST_CHUNK_BYTES)) {
        return beginsWithHeader(window, compression);
      }
    }
  }

  private static boolean beginsWithHeader(RecordWindow window, Compression compression) {
    try {
      int have = window.require(Framing.HEADER_BYTES);
      if (have < Framing.HEADER_BYTES) {
        return have == 0 && compression != Compression.NONE;
      }
      return Framing.isHeader(window.bytes(), window.start(), new MaskedCrc32c());
    } catch (IOException _) {
      return false;
    }
  }
}
