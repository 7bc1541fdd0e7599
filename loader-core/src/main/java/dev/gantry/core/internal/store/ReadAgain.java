// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.internal.memory.HostMemory;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;

/// Counts what this process reads of local files past the page cache. A file of which seven eighths
/// were read so goes through the page cache from its next opening on, so that it is hot after that;
/// a few bytes, such as those of a header, are often cached already. Files that are read once leave
/// the page cache as it is.
///
/// The files that go through the page cache take at most half of the available memory together; a
/// file that does not fit is read past the page cache, which is faster than reading it through a
/// page cache that loses it before it is read again. Thread-safe.
final class ReadAgain {
  static final ReadAgain OF_PROCESS =
      new ReadAgain(() -> HostMemory.availableBytes().orElse(0), 16_384);

  private final LongSupplier availableBytes;
  private final int mostFiles;

  /// The remembered files, in the order of their last opening.
  private final Map<SourceFile.Identity, File> files = new LinkedHashMap<>(16, 0.75f, true);

  /// The bytes of all files that go through the page cache.
  private long cachedBytes;

  /// @param availableBytes returns the bytes of available memory
  /// @param mostFiles how many files are remembered
  ReadAgain(LongSupplier availableBytes, int mostFiles) {
    this.availableBytes = availableBytes;
    this.mostFiles = mostFiles;
  }

  /// The bytes that were read of one file. Thread-safe.
  static final class File {
    private final LongAdder directBytes = new LongAdder();

    /// Whether the file counts among those that go through the page cache.
    private boolean cached;

    private volatile boolean again;

    /// Notes that bytes were read past the page cache.
    void readDirectly(long bytes) {
      directBytes.add(bytes);
    }

    /// Whether the file goes through the page cache since it was last opened.
    boolean isReadAgain() {
      return again;
    }
  }

  /// Remembers a file that is opened, and decides whether it goes through the page cache.
  File opened(SourceFile.Identity identity) {
    File file = remember(identity);
    if (file.directBytes.sum() >= identity.size() - identity.size() / 8) {
      decide(file, identity.size(), availableBytes.getAsLong() / 2);
    }
    return file;
  }

  private synchronized File remember(SourceFile.Identity identity) {
    File known = files.get(identity);
    if (known != null) {
      return known;
    }
    forgetOne();
    File file = new File();
    files.put(identity, file);
    return file;
  }

  /// @param mostBytes how many bytes of files may go through the page cache
  private synchronized void decide(File file, long size, long mostBytes) {
    if (!file.cached && cachedBytes + size <= mostBytes) {
      file.cached = true;
      cachedBytes += size;
    }
    file.again = file.cached && cachedBytes <= mostBytes;
  }

  private void forgetOne() {
    if (files.size() >= mostFiles) {
      Iterator<Map.Entry<SourceFile.Identity, File>> all = files.entrySet().iterator();
      Map.Entry<SourceFile.Identity, File> eldest = all.next();
      cachedBytes -= eldest.getValue().cached ? eldest.getKey().size() : 0;
      all.remove();
    }
  }
}
