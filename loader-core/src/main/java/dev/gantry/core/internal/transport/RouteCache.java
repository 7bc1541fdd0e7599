package dev.gantry.core.internal.transport;

import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Cleanup;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Files that are kept open, the least recently used of them closed to make room for others.
///
/// Bounded: at most `mostFiles`, or as many as are in use at once where that is more. Thread-safe;
/// [#close] only when no file is in use.
final class RouteCache implements AutoCloseable {
  /// Of the process, or of the whole system.
  private static final Set<String> NO_DESCRIPTOR = Set.of("EMFILE", "ENFILE");

  private final Function<Location, Route> opener;
  private final int mostFiles;

  /// In the order of their last use.
  private final Map<Location, Entry> entries = new LinkedHashMap<>(16, 0.75f, true);

  /// A file that is open, or is about to be opened by the first who uses it.
  private static final class Entry {
    private final Location file;
    private int users;
    private volatile @Nullable Route route;

    Entry(Location file) {
      this.file = file;
    }

    synchronized Route open(Function<Location, Route> opener) {
      Route opened = route;
      if (opened == null) {
        opened = opener.apply(file);
        route = opened;
      }
      return opened;
    }

    /// One or none; does not wait for who is opening it.
    List<Route> opened() {
      Route opened = route;
      return opened == null ? List.of() : List.of(opened);
    }
  }

  /// A file in use, which is not closed before this is.
  final class Use implements AutoCloseable {
    private final Entry entry;
    private final Route route;

    private Use(Entry entry, Route route) {
      this.entry = entry;
      this.route = route;
    }

    Route route() {
      return route;
    }

    @Override
    public void close() {
      leave(entry);
    }
  }

  /// @param opener opens a file; several may be opened at once
  RouteCache(Function<Location, Route> opener, int mostFiles) {
    this.opener = opener;
    this.mostFiles = mostFiles;
  }

  /// Opens the file unless it is open already; who asks for one that is being opened waits.
  Use use(Location file) {
    Entry entry = enter(file);
    boolean complete = false;
    try {
      Use use = new Use(entry, open(entry));
      complete = true;
      return use;
    } finally {
      if (!complete) {
        leave(entry);
      }
    }
  }

  /// Where the process has no descriptor left, files that nothing reads are closed for this one.
  private Route open(Entry entry) {
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

  private synchronized Entry enter(Location file) {
    Entry entry = entries.computeIfAbsent(file, Entry::new);
    entry.users++;
    return entry;
  }

  private void leave(Entry entry) {
    close(leftOver(entry));
  }

  /// What is to be closed, now that somebody needs `entry` no longer; the closing itself needs no
  /// lock.
  private synchronized List<Entry> leftOver(Entry entry) {
    entry.users--;
    if (entry.users == 0 && entry.opened().isEmpty()) {
      // It could not be opened.
      entries.remove(entry.file);
    }
    return removeUnused(mostFiles);
  }

  /// The least recently used that nothing reads, until `most` are left.
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
            .flatMap(entry -> entry.opened().stream())
            .<Runnable>map(route -> route::close)
            .toList());
  }

  /// One line an open file.
  synchronized List<TransferReport.FileReport> reports() {
    return entries.values().stream()
        .flatMap(entry -> entry.opened().stream())
        .map(Route::report)
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
