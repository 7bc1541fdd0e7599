// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.GantryException;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.transport.FileTransport.OpenFile;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// Keeps files open with their transports, and closes the least recently used to make room.
///
/// Bounded: at most `mostFiles`, or as many as are in use at once if that is more. Thread-safe;
/// [#close] only when no file is in use.
final class OpenFiles implements AutoCloseable {
  /// For the process, or for the whole system.
  private static final Set<String> NO_DESCRIPTOR = Set.of("EMFILE", "ENFILE");

  private final Function<Location, OpenFile> opener;
  private final UnaryOperator<OpenFile> reopener;
  private final int mostFiles;

  /// In the order of their last use.
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

    /// Whether a file that is being cached was opened, and lies in the cache as a whole by now.
    boolean isWhole() {
      OpenFile now = opened;
      return now != null && now.source().isWhole();
    }

    /// One or none; does not wait for a thread that is opening it.
    List<OpenFile> ifOpen() {
      OpenFile now = opened;
      return now == null ? List.of() : List.of(now);
    }
  }

  /// A file in use, which stays open until this is closed.
  final class Use implements AutoCloseable {
    private final Entry entry;
    private final OpenFile file;

    private Use(Entry entry, OpenFile file) {
      this.entry = entry;
      this.file = file;
    }

    OpenFile file() {
      return file;
    }

    @Override
    public void close() {
      leave(entry);
    }
  }

  /// @param opener opens a file; several may be opened at once
  /// @param reopener opens a file out of the cache, where it is whole by now
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

  /// If the process has no descriptor left, closes files that nothing reads.
  private OpenFile open(Entry entry) {
    try {
      return entry.open(opener);
    } catch (TransferException e) {
      List<Entry> unused = e.isErrno(NO_DESCRIPTOR) ? removeUnused(0) : List.of();
      if (unused.isEmpty()) {
        throw e;
      }
      close(unused);
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

  /// From now on the file is read out of the cache. Readers of the remote one finish.
  private Entry enterWhole(Entry filling) {
    Entry whole = new Entry(filling.file);
    try {
      OpenFile _ = whole.open(_ -> reopener.apply(filling.ifOpen().getFirst()));
    } catch (GantryException _) {
      // The other one serves.
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
    close(List.of(whole));
    return enterOpen(filling.file);
  }

  private void leave(Entry entry) {
    close(leftOver(entry));
  }

  /// The entries to close when a user leaves `entry`. Closing them needs no lock.
  private synchronized List<Entry> leftOver(Entry entry) {
    entry.users--;
    if (entry.users == 0 && entry.ifOpen().isEmpty()) {
      // It could not be opened.
      entries.remove(entry.file);
    }
    List<Entry> unused = removeUnused(mostFiles);
    if (entry.users == 0 && entries.get(entry.file) != entry && !unused.contains(entry)) {
      unused.add(entry);
    }
    return unused;
  }

  /// Removes the least recently used that nothing reads, until `most` are left.
  private synchronized List<Entry> removeUnused(int most) {
    List<Entry> unused = new ArrayList<>();
    Iterator<Entry> eldest = entries.values().iterator();
    while (entries.size() > most && eldest.hasNext()) {
      Entry next = eldest.next();
      if (next.users == 0) {
        eldest.remove();
        unused.add(next);
      }
    }
    return unused;
  }

  private static void close(List<Entry> closing) {
    Cleanup.runAll(
        closing.stream()
            .flatMap(entry -> entry.ifOpen().stream())
            .<Runnable>map(file -> file::close)
            .toList());
  }

  /// Ends the reads of remote files.
  void endReads() {
    List<Entry> all;
    synchronized (this) {
      all = List.copyOf(entries.values());
    }
    all.stream()
        .flatMap(entry -> entry.ifOpen().stream())
        .forEach(file -> file.source().endReads());
  }

  /// One report for each open file.
  synchronized List<TransferReport.FileReport> reports() {
    return entries.values().stream()
        .flatMap(entry -> entry.ifOpen().stream())
        .map(file -> file.transport().report())
        .toList();
  }

  @Override
  public void close() {
    List<Entry> all;
    synchronized (this) {
      all = List.copyOf(entries.values());
      entries.clear();
    }
    close(all);
  }
}
