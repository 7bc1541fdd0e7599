// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.internal.memory.HostMemory;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;

/// Counts what this process reads of local files past the page cache. A file of which seven eighths
/// were read so goes through the page cache from its next opening on, so that it is hot after that;
/// a few bytes, such as those of a header, are often cached already. Files that are read once leave
/// the page cache as it is.
///
/// The files that go through the page cache take at most half of the available memory together; a
/// file that does not fit is read past the page cache, which is faster than reading it through a
/// page cache that loses it before it is read again. If such a file is then read whole once more, it
/// takes the place of files that are neither open nor were opened since it did not fit. Thread-safe.
final class ReadAgain {
  static final ReadAgain OF_PROCESS =
      new ReadAgain(() -> HostMemory.availableBytes().orElse(0), 16_384);

  private final LongSupplier availableBytes;
  private final int mostFiles;

  /// The remembered files, in the order of their last opening.
  private final Map<SourceFile.Identity, File> files = new LinkedHashMap<>(16, 0.75f, true);

  /// The bytes of all files that go through the page cache.
  private long cachedBytes;

  /// How many times any file was opened.
  private long openings;

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

    /// How many times the file is open now.
    private final AtomicInteger open = new AtomicInteger();

    /// The number of its last opening among all openings.
    private long lastOpening;

    /// The number of the opening at which the file did not fit; 0 if there was none.
    private long waitingSince;

    /// The bytes that had been read past the page cache at that opening.
    private long waitingBytes;

    private volatile boolean again;

    /// Notes that the file is open until [#closed].
    void staysOpen() {
      open.incrementAndGet();
    }

    void closed() {
      open.decrementAndGet();
    }

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
    if (file.directBytes.sum() >= mostOf(identity)) {
      decide(file, identity, availableBytes.getAsLong() / 2);
    }
    return file;
  }

  private static long mostOf(SourceFile.Identity identity) {
    return identity.size() - identity.size() / 8;
  }

  private synchronized File remember(SourceFile.Identity identity) {
    File file = files.get(identity);
    if (file == null) {
      forgetOne();
      file = new File();
      files.put(identity, file);
    }
    file.lastOpening = ++openings;
    return file;
  }

  /// @param mostBytes how many bytes of files may go through the page cache
  private synchronized void decide(File file, SourceFile.Identity identity, long mostBytes) {
    if (!file.equals(files.get(identity))) {
      // Another thread has forgotten the file meanwhile, so nothing would subtract its bytes.
      return;
    }
    long more = file.cached ? 0 : identity.size();
    if (cachedBytes + more > mostBytes) {
      takePlaces(file, mostOf(identity), mostBytes - more);
    }
    file.again = cachedBytes + more <= mostBytes;
    if (file.again) {
      file.cached = true;
      file.waitingSince = 0;
      cachedBytes += more;
    }
  }

  /// Takes the places of the files that were opened least recently, if `file` was read whole since
  /// it did not fit, and they were not opened meanwhile. An epoch reads its files in turn, so these
  /// do not take each other's places.
  ///
  /// @param whole how many bytes of `file` are most of it
  /// @param mostBytes how many bytes of other files may go through the page cache
  private void takePlaces(File file, long whole, long mostBytes) {
    long read = file.directBytes.sum();
    long since = file.waitingSince;
    if (since > 0 && read - file.waitingBytes < whole) {
      return;
    }
    file.waitingSince = file.lastOpening;
    file.waitingBytes = read;
    List<Map.Entry<SourceFile.Identity, File>> leaving = new ArrayList<>();
    long left = cachedBytes;
    for (Map.Entry<SourceFile.Identity, File> other : files.entrySet()) {
      if (left <= mostBytes || other.getValue().lastOpening >= since) {
        break;
      }
      if (other.getValue().cached && other.getValue().open.get() == 0) {
        leaving.add(other);
        left -= other.getKey().size();
      }
    }
    if (left <= mostBytes) {
      leaving.forEach(this::leave);
    }
  }

  private void leave(Map.Entry<SourceFile.Identity, File> entry) {
    cachedBytes -= entry.getValue().cached ? entry.getKey().size() : 0;
    entry.getValue().cached = false;
  }

  private void forgetOne() {
    if (files.size() >= mostFiles) {
      Iterator<Map.Entry<SourceFile.Identity, File>> all = files.entrySet().iterator();
      leave(all.next());
      all.remove();
    }
  }
}
