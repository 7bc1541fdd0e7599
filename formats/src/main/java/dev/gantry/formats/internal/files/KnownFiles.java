package dev.gantry.formats.internal.files;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.store.SourceFile.Identity;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/// The files of a dataset as they were when it was opened: what is known of their bytes is true of
/// no others. For as long as the process runs; a copy of the files is another dataset's.
/// Thread-safe.
public final class KnownFiles {
  private final Map<Location, Object> known = new ConcurrentHashMap<>();
  private final String advice;

  /// @param advice what to do where a file has changed, for errors
  public KnownFiles(String advice) {
    this.advice = advice;
  }

  /// Which file has a name now, and in which state, without opening it.
  ///
  /// @throws TransferException if there is none
  public static Identity look(Path file) {
    try {
      Map<String, Object> found = Files.readAttributes(file, "unix:dev,ino,size,lastModifiedTime");
      FileTime modified = (FileTime) Objects.requireNonNull(found.get("lastModifiedTime"));
      return new Identity(
          device(number(found, "dev")),
          number(found, "ino"),
          number(found, "size"),
          modified.to(TimeUnit.NANOSECONDS));
    } catch (IOException e) {
      throw FileErrors.of("stat", file.toString(), e);
    }
  }

  private static long number(Map<String, Object> attributes, String name) {
    return (Long) Objects.requireNonNull(attributes.get(name));
  }

  /// glibc's `gnu_dev_major` and `gnu_dev_minor` of a `dev_t`.
  private static long device(long encoded) {
    long major = (encoded >>> 8 & 0xfffL) | (encoded >>> 32 & 0xfffff000L);
    long minor = (encoded & 0xffL) | (encoded >>> 12 & 0xffffff00L);
    return major << Integer.SIZE | minor;
  }

  /// This is what the file must be from now on.
  public void expect(Location file, Object identity) {
    known.put(file, identity);
  }

  /// Compares a file that was opened; one of which nothing is known yet is known then.
  ///
  /// @throws MalformedFileException of kind `changed-meanwhile` where it is another
  public void check(Location file, Object opened) {
    Object before = known.putIfAbsent(file, opened);
    if (before != null && !before.equals(opened)) {
      throw new MalformedFileException(
          file, 0, "changed-meanwhile", difference(before, opened) + "; " + advice);
    }
  }

  private static String difference(Object before, Object now) {
    if (!(before instanceof Identity was && now instanceof Identity is)) {
      return "it was " + before + " when it was opened, and is " + now;
    }
    if (is.size() != was.size()) {
      return "it has " + is.size() + " bytes, and had " + was.size() + " when it was opened";
    }
    return is.device() == was.device() && is.inode() == was.inode()
        ? "it was modified since the dataset was opened"
        : "another file has taken its place since the dataset was opened";
  }
}
