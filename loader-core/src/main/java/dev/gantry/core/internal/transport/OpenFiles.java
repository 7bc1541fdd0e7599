// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.GantryException;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.transport.FileTransport.OpenFile;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// Keeps files open with their transports, and closes the least recently used ones if too many are
/// open.
///
/// At most `mostFiles` are open, unless more are in use at once. Thread-safe, except that [#close]
/// may run only when no file is in use.
final class OpenFiles implements AutoCloseable {
  /// The errors of a process or system that has no descriptor left.
  private static final Set<String> NO_DESCRIPTOR = Set.of("EMFILE", "ENFILE");

  private final Function<Location, OpenFile> opener;
  private final UnaryOperator<OpenFile> reopener;
  private final int mostFiles;

  /// The files in the order of their last use.
  private final Map<Location, Entry> entries = new LinkedHashMap<>(16, 0.75f, true);

  /// A file that is open, or will be opened by its first user.
  private static final class Entry {
    private final Location file;
    private int users;

    private volatile @Nullable OpenFile opened;

    Entry(Location file) {
      this.file = file;
    }

    synchronized OpenFile open(Function<Location, OpenFile> opener) {
      OpenFile now = opened;
      if (now == null) {
        now = opener.apply(file);
        opened = now;
      }
      return now;
    }

    /// Whether this is a remote file that was opened before the cache had the whole file, and the
    /// cache has it now.
    boolean isWhole() {
      OpenFile now = opened;
      return now != null && now.source().isWhole();
    }

    /// The file if it is open, or null. Does not wait for a thread that is opening it.
    @Nullable OpenFile ifOpen() {
      return opened;
    }

    void close() {
      OpenFile now = opened;
      if (now != null) {
        now.close();
      }
    }
  }

  /// A file in use, which stays open until this is closed for the first time. Thread-safe.
  final class Use implements AutoCloseable {
    private final Entry entry;
    private final OpenFile file;
    private final AtomicBoolean left = new AtomicBoolean();

    private Use(Entry entry, OpenFile file) {
      this.entry = entry;
      this.file = file;
    }

    OpenFile file() {
      return file;
    }

    @Override
    public void close() {
      if (left.compareAndSet(false, true)) {
        leave(entry);
      }
    }
  }

  /// @param opener opens a file; called by several threads at once
  /// @param reopener opens the cache's copy of a file, after the cache has got the whole file
  OpenFiles(Function<Location, OpenFile> opener, UnaryOperator<OpenFile> reopener, int mostFiles) {
    this.opener = opener;
    this.reopener = reopener;
    this.mostFiles = mostFiles;
  }

  /// Opens the file unless it is open; waits if another thread is opening it.
  Use use(Location file) {
    Entry entry = enter(file);
    return Cleanup.orUndo(() -> new Use(entry, open(entry)), () -> leave(entry));
  }

  /// Opens a file. If the process has no descriptor left, first closes files that nothing reads.
  private OpenFile open(Entry entry) {
    try {
      return entry.open(opener);
    } catch (TransferException e) {
      if (!e.isErrno(NO_DESCRIPTOR) || !closeUnused(0)) {
        throw e;
      }
      return entry.open(opener);
    }
  }

  private Entry enter(Location file) {
    Entry entry = enterOpen(file);
    return entry.isWhole() ? enterWhole(entry) : entry;
  }

  private synchronized Entry enterOpen(Location file) {
    Entry entry = entries.computeIfAbsent(file, Entry::new);
    entry.users++;
    return entry;
  }

  /// Opens the cache's copy of a file for later reads. Reads of the remote file that are running
  /// continue with the remote file.
  private Entry enterWhole(Entry filling) {
    Entry whole = new Entry(filling.file);
    try {
      OpenFile _ = whole.open(_ -> reopener.apply(Objects.requireNonNull(filling.ifOpen())));
    } catch (GantryException _) {
      // If the copy cannot be opened, the remote file is still used.
      return filling;
    }
    boolean first;
    synchronized (this) {
      first = entries.replace(filling.file, filling, whole);
      whole.users = first ? 1 : 0;
    }
    leave(filling);
    if (first) {
      return whole;
    }
    whole.close();
    return enterOpen(filling.file);
  }

  private void leave(Entry entry) {
    try {
      if (isLeftOver(entry)) {
        entry.close();
      }
    } finally {
      boolean _ = closeUnused(mostFiles);
    }
  }

  /// Notes that a user left `entry`, and returns whether that was the last user of an entry that is
  /// not in the map any more.
  private synchronized boolean isLeftOver(Entry entry) {
    entry.users--;
    if (entry.users == 0 && entry.ifOpen() == null) {
      // The entry's file could not be opened.
      entries.remove(entry.file);
    }
    return entry.users == 0 && entries.get(entry.file) != entry;
  }

  /// Closes the least recently used files that nothing reads, until `most` are left. Each file is
  /// closed outside the lock, before the next one is removed, so that none is lost if closing fails.
  ///
  /// @return whether any file was closed
  private boolean closeUnused(int most) {
    Entry unused = removeUnused(most);
    boolean any = unused != null;
    while (unused != null) {
      unused.close();
      unused = removeUnused(most);
    }
    return any;
  }

  private synchronized @Nullable Entry removeUnused(int most) {
    if (entries.size() > most) {
      for (Entry eldest : entries.values()) {
        if (eldest.users == 0) {
          entries.remove(eldest.file);
          return eldest;
        }
      }
    }
    return null;
  }

  /// Ends the running reads of remote files.
  void endReads() {
    List<Entry> all;
    synchronized (this) {
      all = List.copyOf(entries.values());
    }
    all.stream()
        .map(Entry::ifOpen)
        .filter(Objects::nonNull)
        .forEach(file -> file.source().endReads());
  }

  /// The reports of the open files.
  synchronized List<TransferReport.FileReport> reports() {
    return entries.values().stream()
        .map(Entry::ifOpen)
        .filter(Objects::nonNull)
        .map(file -> file.transport().report())
        .toList();
  }

  @Override
  public synchronized void close() {
    Cleanup.forEach(entries.values(), Entry::close);
    entries.clear();
  }
}
