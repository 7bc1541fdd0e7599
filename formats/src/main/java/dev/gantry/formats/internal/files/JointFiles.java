// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import dev.gantry.core.internal.commit.Folders;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.TemporaryName;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// Files that are written and read as one set. A list beside them defines the set: the format's own index,
/// or else a list of names and sizes. Every reader of such folders asks [FileList#files] for the files.
///
/// All files are written into a folder of [unfinished work][#unfinished], by one process or by several that
/// see its file system. Then the first process moves them to their places:
///
/// - A set of unique names ([#begin]) is all of its folder. The files are moved first; then the new list
///   replaces an older one in one `rename`, so that readers find either the old set or the new one. Before
///   that, and after a crash at that point, the folder has files of the new set that no list names.
/// - A set of names that the user chose ([#beginNamed]) is one of several in its folder, and its
///   files have the same names as an old set's. The list is replaced first, then the old files
///   are removed, and then the new ones are moved. Before the last one is there, readers by the
///   list find a file missing; no reader finds files of two sets.
///
/// If a crash comes after the list of a named set was replaced, the next writer of the set moves
/// the files that were not moved yet.
///
/// The next writer of the set also removes the other leftovers of a crash: unfinished work, and
/// files that only an unfinished or a replaced list names. Files that no such list names are
/// never touched, unless they have a name that the user chose for the new ones. Not thread-safe.
public final class JointFiles implements AutoCloseable {
  /// The name of a folder's list. Other programs that read such folders ignore names that begin with an
  /// underscore.
  public static final String LIST = "_gantry-files";

  /// The start of the name of a named set's list; the set's name follows.
  static final String NAMED_LIST = LIST + "-";

  private static final String REPLACED = "replaced";

  /// The list of a named set's files by their unfinished names, in the order of the set's list.
  private static final String MOVES = "moves";

  private static final Pattern WORK = Pattern.compile("part-[0-9A-Za-z.-]+|shard-[0-9]{5}\\.bin");
  private static final int JOB_DIGITS = 8;

  /// Matches the names that [Part#of] gives.
  static final Pattern NAME =
      Pattern.compile("part-[0-9]{5,10}-of-[0-9]{5,10}-[0-9A-Za-z]{" + JOB_DIGITS + "}\\..+");

  private static final int MAX_TRIES = 100;

  private final GantrySession session;
  private final Folders folders;
  private final Path folder;
  private final Path work;
  private final Path list;
  private final Function<Path, SequencedMap<String, Long>> sizes;
  private final boolean named;
  private final OutputFolder output;

  /// Whether this set replaces an older one.
  private final boolean replaces;

  /// The files that this has moved into the folder, in the order of the moves, if it replaces no
  /// set.
  private final List<Path> added = new ArrayList<>();

  /// Made early, since the folder's lock must be given back even if the heap is full.
  private final Runnable removal = this::removeAll;

  private boolean listed;
  private boolean done;

  private JointFiles(
      GantrySession session,
      Path folder,
      Path work,
      Path list,
      Function<Path, SequencedMap<String, Long>> sizes,
      boolean named,
      OutputFolder output) {
    this.session = session;
    this.folders = session.folders();
    this.folder = folder;
    this.work = work;
    this.list = list;
    this.sizes = sizes;
    this.named = named;
    this.output = output;
    replaces = Files.exists(list, LinkOption.NOFOLLOW_LINKS);
  }

  /// A file of a set.
  public record Part(String unfinished, String name) {
    /// Makes a file whose name no other set has.
    ///
    /// @param number the file's number of `count`, from 0
    /// @param job this set's UUID
    /// @param suffix the end of the name, which begins with a dot
    public static Part of(String unfinished, int number, int count, String job, String suffix) {
      return new Part(
          unfinished,
          numbered("part", number, count) + "-" + job.substring(0, JOB_DIGITS) + suffix);
    }
  }

  /// The name of one of `count` files: `train-00000-of-00010`.
  ///
  /// @param number the file's number of `count`, from 0
  public static String numbered(String name, int number, int count) {
    return String.format(Locale.ROOT, "%s-%05d-of-%05d", name, number, count);
  }

  /// The folder in which processes write their files, whose names begin with `part-`, while the set of `folder` is
  /// unfinished.
  public static Path unfinished(Path folder) {
    return folder.resolve(".gantry-unfinished");
  }

  /// The folder in which processes write this set's files until it is finished.
  public Path unfinished() {
    return work;
  }

  /// Begins a set of unique names, which is all of its folder.
  ///
  /// @param mayReplace whether finishing this set may replace an existing set
  /// @throws MisuseException if there is a set that may not be replaced, or another writer is at
  ///     work
  /// @throws dev.gantry.core.TransferException if the folder cannot be made, read or cleared
  public static JointFiles begin(GantrySession session, Path folder, boolean mayReplace) {
    return begin(session, folder, LIST, file -> FileList.read(session, file).sizes(), mayReplace);
  }

  /// Begins a set as [#begin(GantrySession, Path, boolean)] does, with the format's own index as the list.
  ///
  /// @param list the index's file name
  /// @param sizes reads the sizes of the files that such an index names; an empty map if the
  ///     index is missing
  public static JointFiles begin(
      GantrySession session,
      Path folder,
      String list,
      Function<Path, SequencedMap<String, Long>> sizes,
      boolean mayReplace) {
    OutputFolder output = OutputFolder.take(session.folders(), folder, "writer of samples");
    JointFiles joint =
        new JointFiles(
            session, folder, unfinished(folder), folder.resolve(list), sizes, false, output);
    return joint.begin(mayReplace);
  }

  /// Refuses a folder that has the list of another set.
  ///
  /// @param what what the set is, for the message
  public static void requireNone(Path folder, String list, String what) {
    if (Files.exists(folder.resolve(list), LinkOption.NOFOLLOW_LINKS)) {
      throw new MisuseException(
          folder + " holds " + what + " already: " + list + "; name another place");
    }
  }

  /// Begins one of a folder's sets, whose files are named by [#numbered]. It replaces an older set of its
  /// name.
  ///
  /// @throws MisuseException if all files of the folder are one set, another writer of this set is at work,
  ///     or a list cannot hold the name
  /// @throws dev.gantry.core.TransferException if the folder cannot be made, read or cleared
  public static JointFiles beginNamed(GantrySession session, Path folder, String name) {
    if (name.startsWith(".") || name.contains("\n") || name.contains("\r")) {
      throw new MisuseException(
          "a set's name must not begin with a dot and have no line break: " + name);
    }
    // The hidden name is no longer than the files' names, so the file system accepts it.
    String hidden = ".gantry-" + name;
    OutputFolder output =
        OutputFolder.take(session.folders(), folder, hidden + ".lock", "writer of " + name);
    JointFiles joint =
        new JointFiles(
            session,
            folder,
            folder.resolve(hidden + ".work"),
            folder.resolve(NAMED_LIST + name),
            file -> FileList.read(session, file).sizes(),
            true,
            output);
    return joint.begin(false);
  }

  private JointFiles begin(boolean mayReplace) {
    return Cleanup.orUndo(
        () -> {
          Path all = named ? folder.resolve(LIST) : list;
          if (Files.exists(all, LinkOption.NOFOLLOW_LINKS) && !mayReplace) {
            throw new MisuseException(folder + " holds a set of files already; name another place");
          }
          // A list may have been removed, and the removal may not be on the disk yet.
          folders.sync(folder);
          var _ = sizes.apply(list);
          moveRest();
          clear();
          if (!Files.isDirectory(work, LinkOption.NOFOLLOW_LINKS)) {
            folders.create(work);
          }
          return this;
        },
        () -> output.takeBack(() -> {}));
  }

  /// Completes the moves of a named set's files after a crash, if the set's list is in its place.
  /// If the list in its place belongs to an older set whose files have the same sizes, this
  /// replaces the older set with the new one.
  private void moveRest() {
    Path moves = work.resolve(MOVES);
    if (named && isFile(moves)) {
      SequencedMap<String, Long> from = sizes.apply(moves);
      SequencedMap<String, Long> to = sizes.apply(list);
      if (List.copyOf(from.values()).equals(List.copyOf(to.values()))) {
        Iterator<String> names = to.keySet().iterator();
        from.forEach((unfinished, size) -> {
          Path file = folder.resolve(names.next());
          if (FileList.hasSize(work.resolve(unfinished), size)) {
            folders.rename(work.resolve(unfinished), file);
          }
        });
        folders.sync(folder);
      }
    }
  }

  /// Makes a set of the given parts. Other unfinished files are removed.
  ///
  /// @return the set's files
  /// @throws MisuseException if another program has made a file of a unique name
  /// @throws dev.gantry.core.TransferException if a file is missing or cannot be moved; the set does not
  ///     exist then, or is removed when this is closed. A set that replaced another one, or has names of
  ///     the user's choice, stays if only the last `fsync` of the folder failed
  public List<Path> finish(List<Part> parts) {
    byte[] text = FileList.of(work, parts).text().getBytes(StandardCharsets.UTF_8);
    return finish(parts, text, WriteOptions.defaults());
  }

  /// Finishes as [#finish(List)] does, with the text of the format's own index as the list.
  public List<Path> finish(List<Part> parts, byte[] text, WriteOptions options) {
    if (done) {
      throw new MisuseException("the set in " + folder + " is finished or closed");
    }
    if (replaces) {
      long bytes = list.toFile().length();
      write(REPLACED, new Source.FilePart(new Extent(Location.of(list), 0, bytes)), options);
    }
    String name = String.valueOf(list.getFileName());
    write(name, new Memory.OnHost(MemorySegment.ofArray(text)), options);
    List<Path> files = parts.stream().map(part -> folder.resolve(part.name())).toList();
    if (named) {
      List<Part> moves =
          parts.stream().map(part -> new Part(part.unfinished(), part.unfinished())).toList();
      byte[] movesText = FileList.of(work, moves).text().getBytes(StandardCharsets.UTF_8);
      write(MOVES, new Memory.OnHost(MemorySegment.ofArray(movesText)), options);
      replaceNamed(files);
    }
    for (int i = 0; i < files.size(); i++) {
      if (!named) {
        requireFree(files.get(i));
      }
      folders.rename(work.resolve(parts.get(i).unfinished()), files.get(i));
    }
    if (!named) {
      folders.sync(folder);
      if (!replaces) {
        requireFree(list);
      }
      listed = true;
      folders.rename(work.resolve(name), list);
    }
    // The old set cannot be restored from here on, so the new one stays.
    done = named || replaces;
    try {
      folders.sync(folder);
      done = true;
      tidyUp();
    } finally {
      if (done) {
        output.release();
      }
    }
    return files;
  }

  private void tidyUp() {
    try {
      clearAll();
    } catch (RuntimeException _) {
      // The set is finished, so this is no failure. The next writer tidies up.
    }
  }

  /// Puts the list into its place, and removes the old set's files and any other file with a name of the
  /// new set.
  private void replaceNamed(List<Path> files) {
    Set<Path> before = new LinkedHashSet<>(there(list));
    for (Path file : files) {
      if (Files.isDirectory(file, LinkOption.NOFOLLOW_LINKS)) {
        throw new MisuseException(file + " is there, but no file; name another place");
      }
      if (Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
        before.add(file);
      }
    }
    if (before.isEmpty() && !Files.exists(list)) {
      added.add(list);
      added.addAll(files);
    }
    folders.rename(work.resolve(list.getFileName()), list);
    folders.sync(folder);
    if (!before.isEmpty()) {
      before.forEach(folders::removeFile);
      folders.sync(folder);
    }
  }

  private static void requireFree(Path file) {
    if (Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
      throw new MisuseException(file + " was made by another program meanwhile");
    }
  }

  private void write(String name, Source contents, WriteOptions options) {
    var _ = session.write(List.of(new NewFile(work.resolve(name), List.of(contents))), options);
  }

  /// Removes the unfinished set and the folders that were made for it; does nothing once the set is
  /// finished. If the old set's files are already removed, the list stays, so that readers are refused.
  /// Idempotent.
  @Override
  public void close() {
    if (!done) {
      done = true;
      output.takeBack(removal);
    }
  }

  private void removeAll() {
    Cleanup.runAll(
        List.of(
            () -> added.reversed().forEach(folders::removeFile),
            this::takeListBack,
            this::clearAll));
  }

  /// Takes the list back before its files are removed, so that no crash leaves a list without its files.
  private void takeListBack() {
    if (listed && isFile(list)) {
      folders.rename(list, work.resolve(list.getFileName()));
      folders.sync(folder);
    }
  }

  /// Clears the unfinished work, and repeats this while another process that is about to end adds
  /// files to it.
  private void clearAll() {
    clear();
    for (int i = 0; i < MAX_TRIES && Files.isDirectory(work); i++) {
      clear();
    }
  }

  private void clear() {
    String name = String.valueOf(list.getFileName());
    Path moves = work.resolve(MOVES);
    if (isFile(moves)) {
      // The list of moves is removed first, since a next writer would move files by it.
      folders.removeFile(moves);
      folders.sync(work);
    }
    Path replaced = work.resolve(REPLACED);
    // In a named set, files with the names of an unfinished list may be the old set's, so they
    // stay.
    List<Path> left = new ArrayList<>(named ? List.of() : there(work.resolve(name)));
    try {
      List<Path> used = there(list);
      left.addAll(there(replaced));
      left.removeAll(used);
    } catch (MalformedFileException _) {
      // Another program has replaced the list, and may use the old set's files, so they stay.
    }
    if (!left.isEmpty()) {
      left.forEach(folders::removeFile);
      folders.sync(folder);
    }
    FolderEntries.of(work).stream().filter(JointFiles::isOurs).forEach(folders::removeFile);
    for (Path unfinished : List.of(replaced, work.resolve(name))) {
      if (isFile(unfinished)) {
        folders.removeFile(unfinished);
      }
    }
    if (FolderEntries.of(work).isEmpty()) {
      folders.removeFolder(work);
    }
  }

  /// Returns the files that a list names and that have the sizes in the list.
  private List<Path> there(Path someList) {
    return there(folder, sizes.apply(someList));
  }

  private static List<Path> there(Path folder, Map<String, Long> sizes) {
    return sizes.entrySet().stream()
        .filter(entry -> FileList.hasSize(folder.resolve(entry.getKey()), entry.getValue()))
        .map(entry -> folder.resolve(entry.getKey()))
        .toList();
  }

  /// Returns the files of a folder that belong to its set, or that a writer of sets left.
  ///
  /// @param list the file name of the folder's list
  /// @param sizes reads the sizes of the files that such a list names
  public static List<Path> known(
      Path folder, Path list, Function<Path, SequencedMap<String, Long>> sizes) {
    Path work = unfinished(folder);
    return Stream.of(list, work.resolve(list.getFileName()), work.resolve(REPLACED))
        .flatMap(each -> there(folder, sizes.apply(each)).stream())
        .toList();
  }

  private static boolean isOurs(Path file) {
    String name = String.valueOf(file.getFileName());
    return (WORK.matcher(name).matches() || TemporaryName.is(file)) && isFile(file);
  }

  private static boolean isFile(Path file) {
    return Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS);
  }
}
