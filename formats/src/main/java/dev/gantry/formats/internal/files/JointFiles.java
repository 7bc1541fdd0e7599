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
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// Files that are one set. A list of them makes them one, and says alone what is in the set. A format without an
/// index of its own has a list of names and sizes; every reader of such folders asks [#of].
///
/// All files are written into a folder of [unfinished work][#unfinished], by one process or by several that
/// see its file system. Then the first process moves them to where they belong:
///
/// - Files of unique names ([#begin]) are all of their folder. They are moved first, and the list then
///   takes the place of an older one at once, so that the old set is there until the new one is.
///   Before that, and after a crash there, files of the set lie in the folder that no list names.
/// - Files that are named by their user ([#beginNamed]) are one of their folder's sets, and have the names of
///   the old set's. The list goes first, then the old files are removed, and then the new ones are
///   moved. Until the last of them is there, readers by the list find a file missing, and no reader finds
///   files of two sets.
///
/// The next writer of the set removes what a crash leaves: unfinished work, and files that only an
/// unfinished or a replaced list names. Files that no list of ours names are never touched, unless they have
/// a name that the user gave the new ones. For one thread.
public final class JointFiles implements AutoCloseable {
  /// Other readers of such folders pass over names that begin so.
  public static final String LIST = "_gantry-files";

  /// The name of a set follows.
  static final String NAMED_LIST = LIST + "-";

  private static final String REPLACED = "replaced";
  private static final Pattern WORK = Pattern.compile("part-[0-9A-Za-z.-]+|shard-[0-9]{5}\\.bin");
  private static final int JOB_DIGITS = 8;

  /// Matches the names that [Part#of] gives.
  static final Pattern NAME =
      Pattern.compile("part-[0-9]{5,10}-of-[0-9]{5,10}-[0-9A-Za-z]{" + JOB_DIGITS + "}\\..+");

  private static final int MOST_TRIES = 100;

  private final GantrySession session;
  private final Folders folders;
  private final Path folder;
  private final Path work;
  private final Path list;
  private final Function<Path, SequencedMap<String, Long>> sizes;
  private final boolean named;
  private final OutputFolder output;

  /// Whether there is a set that this one replaces.
  private final boolean replaces;

  /// The files that this has put into the folder, in this order, where nothing was replaced.
  private final List<Path> added = new ArrayList<>();

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

  /// A file of a set: what it is called among unfinished work, and in the set.
  public record Part(String unfinished, String name) {
    /// A file that is called as no other set's is.
    ///
    /// @param number of `count`, from 0
    /// @param job a UUID of this set
    /// @param suffix that begins with a dot
    public static Part of(String unfinished, int number, int count, String job, String suffix) {
      return new Part(
          unfinished,
          numbered("part", number, count) + "-" + job.substring(0, JOB_DIGITS) + suffix);
    }
  }

  /// The name of a file of several: `train-00000-of-00010`.
  ///
  /// @param number of `count`, from 0
  public static String numbered(String name, int number, int count) {
    return String.format(Locale.ROOT, "%s-%05d-of-%05d", name, number, count);
  }

  /// The folder in which processes write their files, whose names begin with `part-`, while the set of `folder` is
  /// unfinished.
  public static Path unfinished(Path folder) {
    return folder.resolve(".gantry-unfinished");
  }

  /// The same of this set.
  public Path unfinished() {
    return work;
  }

  /// The files of a folder for its readers: those of the set in their order, where all are one set. Else
  /// all files whose names begin with neither a dot nor an underscore; among those that are called as the files of a
  /// named set are, those of the set.
  ///
  /// @throws MalformedFileException if a list is none of ours, or a file is not as it says; of kind
  ///     `no-list` where the folder has files of a set and no list
  public static List<Location> of(Folder folder) {
    return FileList.files(folder);
  }

  /// Refuses local files, named one by one, where the list beside them names one, and the set is not whole.
  /// Some files of a whole set may be named without the others. Those of other stores are not looked at.
  ///
  /// @throws MalformedFileException as [#of]
  public static void requireWhole(GantrySession session, List<Location> files) {
    FileList.requireWhole(session, files);
  }

  /// Whether all files of a folder are one set, perhaps one of no files.
  public static boolean isSet(Folder folder) {
    return FileList.of(folder).isPresent();
  }

  /// Begins a set of files of unique names, all of their folder.
  ///
  /// @param mayReplace whether a set of ours that is there goes when this one is finished
  /// @throws MisuseException if there is one that may not be replaced, or another writer is at work
  /// @throws dev.gantry.core.TransferException if the folder cannot be made, read or cleared
  public static JointFiles begin(GantrySession session, Path folder, boolean mayReplace) {
    return begin(session, folder, LIST, file -> FileList.read(session, file).sizes(), mayReplace);
  }

  /// As [#begin(GantrySession, Path, boolean)], with an index of the format's own as the list.
  ///
  /// @param list the name of the index
  /// @param sizes of the files that such an index names; of none where there is no such file
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

  /// Begins one of a folder's sets, whose files are named by [#numbered]. It takes the place of an older one
  /// of its name.
  ///
  /// @throws MisuseException if all files of the folder are one set, another writer of this set is at work,
  ///     or a list cannot hold the name
  /// @throws dev.gantry.core.TransferException if the folder cannot be made, read or cleared
  public static JointFiles beginNamed(GantrySession session, Path folder, String name) {
    if (name.startsWith(".") || name.contains("\n") || name.contains("\r")) {
      throw new MisuseException(
          "a set's name must not begin with a dot and have no line break: " + name);
    }
    // No longer than the files' names.
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
          // A list may have been removed, and its removal be not on the disk yet.
          folders.sync(folder);
          var _ = sizes.apply(list);
          clear();
          if (!Files.isDirectory(work, LinkOption.NOFOLLOW_LINKS)) {
            folders.create(work);
          }
          return this;
        },
        () -> output.takeBack(() -> {}));
  }

  /// Makes a set of files that were written. The others go.
  ///
  /// @return the set's files
  /// @throws MisuseException if another program has made a file of a unique name
  /// @throws dev.gantry.core.TransferException if a file is missing or cannot be moved; the set is not
  ///     there then, or goes when this is closed. Where it replaced another, or has the names of the user's choice, it
  ///     stays if the folder's synchronisation after the last step has failed
  public List<Path> finish(List<Part> parts) {
    String made = FileList.of(work, parts).text();
    return finish(parts, made.getBytes(StandardCharsets.UTF_8), WriteOptions.defaults());
  }

  /// As [#finish(List)], with the text of the format's own index.
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
    // What was there before cannot come back.
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
      // The set is there. The next writer tidies up.
    }
  }

  /// Puts the list into its place, and removes the old set, and what else has a name of the new one.
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

  /// Removes what was written, and the folders that were made for it, unless the set is finished. Where an
  /// old set was removed for it, the list stays, so that its readers are refused. Idempotent.
  @Override
  public void close() {
    if (!done) {
      done = true;
      output.takeBack(() ->
          Cleanup.runAll(
              List.of(
                  () -> added.reversed().forEach(folders::removeFile),
                  this::takeListBack,
                  this::clearAll)));
    }
  }

  /// The list goes before the files, so that no crash leaves it without them.
  private void takeListBack() {
    if (listed && isFile(list)) {
      folders.rename(list, work.resolve(list.getFileName()));
      folders.sync(folder);
    }
  }

  /// Also what another process, told to end, adds meanwhile.
  private void clearAll() {
    clear();
    for (int i = 0; i < MOST_TRIES && Files.isDirectory(work); i++) {
      clear();
    }
  }

  private void clear() {
    String name = String.valueOf(list.getFileName());
    Path replaced = work.resolve(REPLACED);
    // Files of the names in an unfinished list are the old ones where these names are not unique.
    List<Path> left = new ArrayList<>(named ? List.of() : there(work.resolve(name)));
    try {
      List<Path> used = there(list);
      left.addAll(there(replaced));
      left.removeAll(used);
    } catch (MalformedFileException _) {
      // Another program has put something in the list's place. The files of the old set may be its.
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

  /// The files of the folder that are as a list says.
  private List<Path> there(Path someList) {
    return there(folder, sizes.apply(someList));
  }

  private static List<Path> there(Path folder, Map<String, Long> sizes) {
    return sizes.entrySet().stream()
        .filter(entry -> FileList.hasSize(folder.resolve(entry.getKey()), entry.getValue()))
        .map(entry -> folder.resolve(entry.getKey()))
        .toList();
  }

  /// The files of a folder that are of its set, or were left by a writer of sets.
  ///
  /// @param list the folder's list
  /// @param sizes of the files that such a list names
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
