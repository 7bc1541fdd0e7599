package dev.gantry.formats.tfrecord;

import java.io.IOException;
import java.lang.foreign.MemorySegment;

/// The bytes of a file from some place on, decompressed. For one thread.
interface ByteSource extends AutoCloseable {
  int END = -1;

  /// The next bytes: at least one, or [#END].
  ///
  /// @param target native memory, not empty
  /// @throws dev.gantry.core.TransferException if the file cannot be read
  /// @throws IOException if the bytes cannot be decompressed
  int read(MemorySegment target) throws IOException;

  /// How many bytes there still may be at most.
  long mostLeft();

  @Override
  void close();
}
