package dev.gantry.formats.tfrecord;

import dev.gantry.core.internal.store.SourceFile;
import java.lang.foreign.MemorySegment;

/// A file's bytes as they are. Does not own the file.
final class PlainSource implements ByteSource {
  private final SourceFile file;
  private long at;

  /// @param from offset of the first byte, at most the file's size
  PlainSource(SourceFile file, long from) {
    this.file = file;
    this.at = from;
  }

  @Override
  public int read(MemorySegment target) {
    if (at == file.size()) {
      return END;
    }
    int count = (int) Math.min(target.byteSize(), file.size() - at);
    boolean _ = file.read(target.asSlice(0, count), at, count, false);
    at += count;
    return count;
  }

  @Override
  public long mostLeft() {
    return file.size() - at;
  }

  @Override
  public void close() {}
}
