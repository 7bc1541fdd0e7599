// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.commit.Folders;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.TemporaryName;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.FileErrors;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/// Files of a format without an index of its own that several processes write as one set, on a file
/// system that all of them see. A list of their names and sizes makes them a set:
///
/// 1. one process begins; others write files, of unique names, into [#unfinished]
/// 2. the first one writes the list there, and moves the files that are in it to where they belong
/// 3. it moves the list, at once in the place of an older one, and removes what only that one names
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
  public record Part(String unfinished, String name) {}

  /// Where processes write their files, whose names begin with `part-`, while the set is unfinished.
  public static Path unfinished(Path folder) {
    return folder.resolve(".gantry-unfinished");
  }

  /// The files of a set in their order; empty where the folder has no list.
  ///
  /// @throws MalformedFileException if it is no list of ours, or a file is not as it says
  public static Optional<List<Path>> open(Path folder) {
    Path list = folder.resolve(LIST);
    if (!Files.exists(list)) {
      return Optional.empty();
    }
    SequencedMap<Path, Long> sizes = read(folder, list);
    sizes.forEach((file, size) -> {
      if (!hasSize(file, size)) {
        throw new MalformedFileException(
            list,
            0,
            "wrong-file",
            file.getFileName() + " is not there with its " + size + " bytes");
      }
    });
    return Optional.of(List.copyOf(sizes.keySet()));
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
      write(work.resolve(REPLACED), text(list));
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

  private static String text(Path list) {
    try {
      if (Files.size(list) > MOST_LIST_BYTES) {
        throw new MalformedFileException(list, 0, "list-too-large", "more than 100 MB");
      }
      return Files.readString(list);
    } catch (NoSuchFileException _) {
      return "";
    } catch (IOException e) {
      throw FileErrors.of("read", list.toString(), e);
    }
  }

  /// The files that a list names, with their sizes.
  private static SequencedMap<Path, Long> read(Path folder, Path list) {
    String text = text(list);
    SequencedMap<Path, Long> files = new LinkedHashMap<>();
    if (text.isEmpty()) {
      return files;
    }
    List<String> lines = text.lines().toList();
    if (!lines.getFirst().equals(HEAD)) {
      throw new MalformedFileException(
          list, 0, "not-a-list", "the first line is not '" + HEAD + "'");
    }
    for (String line : lines.subList(1, lines.size())) {
      Matcher parts = LINE.matcher(line);
      if (!parts.matches()) {
        throw new MalformedFileException(list, 0, "invalid-line", "no size and name: " + line);
      }
      files.put(folder.resolve(parts.group(2)), Long.parseLong(parts.group(1)));
    }
    return files;
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
    SequencedMap<Path, Long> used = read(folder, folder.resolve(LIST));
    Predicate<Path> isUnused = file -> !used.containsKey(file);
    List<Path> left =
        List.of(LIST, REPLACED).stream()
            .flatMap(list -> read(folder, work.resolve(list)).entrySet().stream())
            .filter(file -> isUnused.test(file.getKey()) && hasSize(file.getKey(), file.getValue()))
            .map(file -> file.getKey())
            .collect(Collectors.toList());
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
