// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.commit.Folders;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.TemporaryName;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.formats.spi.FileBytes;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Files of a format without an index of its own that several processes write as one set, on a file
/// system that all of them see. A list of their names and sizes makes them a set:
///
/// 1. one process begins; others write files, of unique names, into [#unfinished]
/// 2. the first one writes the list there, and moves the files that are in it to where they belong
/// 3. it moves the list, at once in the place of an older one, and removes what only that one names
///
/// So the list alone says what is in the set: every reader of such folders asks [#of]. Between 2 and 3,
/// and after a crash there, files of the set lie in the folder that no list of it names.
///
/// What a crash leaves, the next writer removes: unfinished work, and files that only an unfinished or
/// a replaced list names. Files that no list of ours names are never touched. For one thread.
public final class JointFiles implements AutoCloseable {
  /// Other readers of such folders pass over names that begin so.
  public static final String LIST = "_gantry-files";

  private static final String REPLACED = "replaced";
  private static final String HEAD = "gantry-files 1";
  private static final Pattern LINE = Pattern.compile("([0-9]{1,18}) ([0-9A-Za-z][0-9A-Za-z.-]*)");
  private static final Pattern WORK = Pattern.compile("part-[0-9A-Za-z.-]+");
  private static final int JOB_DIGITS = 8;

  /// Of the names that [Part#of] gives.
  private static final Pattern NAME =
      Pattern.compile("part-[0-9]{5,10}-of-[0-9]{5,10}-[0-9A-Za-z]{" + JOB_DIGITS + "}\\..+");

  private static final int MOST_TRIES = 100;
  private static final long MOST_LIST_BYTES = 100_000_000;

  private final GantrySession session;
  private final Folders folders;
  private final Path folder;
  private final OutputFolder output;
  private boolean done;

  private JointFiles(GantrySession session, Path folder, OutputFolder output) {
    this.session = session;
    this.folders = session.folders();
    this.folder = folder;
    this.output = output;
  }

  /// A file of a set: what it is called among unfinished work, and in the set.
  public record Part(String unfinished, String name) {
    /// A file that is called as no other set's is.
    ///
    /// @param number of `count`, from 0
    /// @param job a UUID of this set
    /// @param suffix that begins with a dot
    public static Part of(String unfinished, int number, int count, String job, String suffix) {
      String unique = job.substring(0, JOB_DIGITS);
      return new Part(
          unfinished,
          String.format(Locale.ROOT, "part-%05d-of-%05d-%s%s", number, count, unique, suffix));
    }
  }

  /// Where processes write their files, whose names begin with `part-`, while the set is unfinished.
  public static Path unfinished(Path folder) {
    return folder.resolve(".gantry-unfinished");
  }

  /// The files of a folder for its readers: those of the set in their order, where it has a list; else all.
  ///
  /// @throws MalformedFileException if it is no list of ours, or a file is not as it says; of kind
  ///     `no-list` where the folder has files of a set and no list
  public static List<Location> of(Folder folder) {
    Optional<Location> list = list(folder);
    if (list.isPresent()) {
      return listed(folder, list.get());
    }
    for (Location file : folder.files()) {
      if (NAME.matcher(file.fileName()).matches()) {
        throw new MalformedFileException(
            folder.location(),
            0,
            "no-list",
            "the folder has files of a set, such as "
                + file.fileName()
                + ", and no "
                + LIST
                + ": their writer is at work or was ended before all were there; write the set"
                + " again");
      }
    }
    return folder.files();
  }

  /// Whether a folder has a list, and so a set, perhaps one of no files.
  public static boolean isSet(Folder folder) {
    return list(folder).isPresent();
  }

  private static Optional<Location> list(Folder folder) {
    return folder.files().stream().filter(file -> file.fileName().equals(LIST)).findFirst();
  }

  private static List<Location> listed(Folder folder, Location list) {
    Map<String, Location> there = new HashMap<>();
    folder.files().forEach(file -> there.put(file.fileName(), file));
    List<Location> files = new ArrayList<>();
    read(list)
        .forEach((name, size) -> {
          Location file = there.get(name);
          // An object of a remote store is there as a whole.
          if (file == null
              || (file instanceof Location.Local(Path path, _) && !hasSize(path, size))) {
            throw new MalformedFileException(
                list, 0, "wrong-file", name + " is not there with its " + size + " bytes");
          }
          files.add(file);
        });
    return List.copyOf(files);
  }

  /// @param mayReplace whether a set of ours that is there goes when this one is finished
  /// @throws MisuseException if there is one that may not be replaced, or another writer is at work
  /// @throws dev.gantry.core.TransferException if the folder cannot be made, read or cleared
  public static JointFiles begin(GantrySession session, Path folder, boolean mayReplace) {
    OutputFolder output = OutputFolder.take(session.folders(), folder, "writer of samples");
    JointFiles joint = new JointFiles(session, folder, output);
    try {
      if (Files.exists(folder.resolve(LIST), LinkOption.NOFOLLOW_LINKS) && !mayReplace) {
        throw new MisuseException(folder + " holds a set of files already; name another place");
      }
      session.folders().sync(folder);
      joint.clear();
      if (!Files.isDirectory(unfinished(folder), LinkOption.NOFOLLOW_LINKS)) {
        session.folders().create(unfinished(folder));
      }
      return joint;
    } catch (RuntimeException | Error failure) {
      output.takeBack(() -> {}, failure);
      throw failure;
    }
  }

  /// Makes a set of files that were written. The others go.
  ///
  /// @return the set's files
  /// @throws MisuseException if another program has made a file of such a name
  /// @throws dev.gantry.core.TransferException if a file is missing or cannot be moved; the set is not
  ///     there then, unless the failure is of the folder's synchronisation after the list has its name
  public List<Path> finish(List<Part> parts) {
    if (done) {
      throw new IllegalStateException("the set is finished or closed");
    }
    Path work = unfinished(folder);
    Path list = folder.resolve(LIST);
    StringBuilder text = new StringBuilder(HEAD).append('\n');
    for (Part part : parts) {
      text.append(size(work.resolve(part.unfinished())))
          .append(' ')
          .append(part.name())
          .append('\n');
    }
    if (Files.exists(list)) {
      write(work.resolve(REPLACED), text(Location.of(list)));
    }
    write(work.resolve(LIST), text.toString());
    List<Path> files = new ArrayList<>();
    for (Part part : parts) {
      Path target = folder.resolve(part.name());
      if (Files.exists(target, LinkOption.NOFOLLOW_LINKS)) {
        throw new MisuseException(target + " was made by another program meanwhile");
      }
      folders.rename(work.resolve(part.unfinished()), target);
      files.add(target);
    }
    folders.sync(folder);
    folders.rename(work.resolve(LIST), list);
    done = true;
    folders.sync(folder);
    try {
      clearAll();
    } catch (RuntimeException _) {
      // The set is there. The next writer tidies up.
    } finally {
      output.release();
    }
    return files;
  }

  private void write(Path file, String text) {
    MemorySegment bytes = MemorySegment.ofArray(text.getBytes(StandardCharsets.UTF_8));
    session.write(
        List.of(new NewFile(file, List.of(new Memory.OnHost(bytes)))), WriteOptions.defaults());
  }

  private static long size(Path file) {
    try {
      return Files.size(file);
    } catch (IOException e) {
      throw FileErrors.of("stat", file.toString(), e);
    }
  }

  private static String text(Location list) {
    try (FileBytes file = FileBytes.open(list)) {
      if (file.length() > MOST_LIST_BYTES) {
        throw new MalformedFileException(list, 0, "list-too-large", "more than 100 MB");
      }
      ByteBuffer bytes = ByteBuffer.allocate((int) file.length());
      file.readFully(bytes, 0);
      return StandardCharsets.UTF_8.decode(bytes.flip()).toString();
    }
  }

  /// The names of a list, with the files' sizes.
  private static SequencedMap<String, Long> read(Location list) {
    List<String> lines = text(list).lines().toList();
    if (lines.isEmpty() || !lines.getFirst().equals(HEAD)) {
      throw new MalformedFileException(
          list, 0, "not-a-list", "the first line is not '" + HEAD + "'");
    }
    SequencedMap<String, Long> files = new LinkedHashMap<>();
    for (String line : lines.subList(1, lines.size())) {
      Matcher parts = LINE.matcher(line);
      if (!parts.matches()) {
        throw new MalformedFileException(list, 0, "invalid-line", "no size and name: " + line);
      }
      files.put(parts.group(2), Long.parseLong(parts.group(1)));
    }
    return files;
  }

  /// As [#read(Location)]; nothing where there is no list.
  private static SequencedMap<String, Long> read(Path list) {
    return Files.exists(list) ? read(Location.of(list)) : new LinkedHashMap<>();
  }

  /// Removes what was written, and the folders that were made for it, unless the set is finished.
  /// Idempotent.
  @Override
  public void close() {
    if (!done) {
      done = true;
      output.takeBack(this::clearAll);
    }
  }

  /// Also what another process, told to end, adds meanwhile.
  private void clearAll() {
    clear();
    for (int i = 0; i < MOST_TRIES && Files.isDirectory(unfinished(folder)); i++) {
      clear();
    }
  }

  private void clear() {
    Path work = unfinished(folder);
    Set<String> used = read(folder.resolve(LIST)).keySet();
    List<Path> left = new ArrayList<>();
    for (String list : List.of(LIST, REPLACED)) {
      read(work.resolve(list))
          .forEach((name, size) -> {
            Path file = folder.resolve(name);
            if (!used.contains(name) && hasSize(file, size)) {
              left.add(file);
            }
          });
    }
    if (!left.isEmpty()) {
      left.forEach(folders::removeFile);
      folders.sync(folder);
    }
    FolderEntries.of(work).stream().filter(JointFiles::isOurs).forEach(folders::removeFile);
    for (String list : List.of(REPLACED, LIST)) {
      folders.removeFile(work.resolve(list));
    }
    if (FolderEntries.of(work).isEmpty()) {
      folders.removeFolder(work);
    }
  }

  private static boolean isOurs(Path file) {
    String name = String.valueOf(file.getFileName());
    return (WORK.matcher(name).matches() || TemporaryName.is(file))
        && Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS);
  }

  private static boolean hasSize(Path file, long bytes) {
    return Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS) && file.toFile().length() == bytes;
  }
}
