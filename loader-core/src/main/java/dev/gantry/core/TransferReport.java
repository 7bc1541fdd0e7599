package dev.gantry.core;

import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// What a transfer did.
///
/// @param bytesByPath bytes read by each path that carried any, blocks at the edges included
/// @param directBytes of these, the bytes that went past the page cache
/// @param unknownBytes of all, the bytes of which the kernel did not say whether they were in the
///     page cache: they went as those do that are not
/// @param reads how many requests that took
/// @param files one line a file
/// @param elapsed from the start of the readers to the last byte's arrival; neither opening files
///     nor allocating memory is in it
public record TransferReport(
    Map<Transport, Long> bytesByPath,
    long directBytes,
    long unknownBytes,
    long reads,
    List<FileReport> files,
    Duration elapsed) {

  /// Of a transfer that had nothing to do.
  public static final TransferReport NOTHING =
      new TransferReport(Map.of(), 0, 0, 0, List.of(), Duration.ZERO);

  public TransferReport {
    bytesByPath = Map.copyOf(bytesByPath);
    files = List.copyOf(files);
  }

  /// @param path how this file's cold bytes travel; where it had none, how its hot ones do
  /// @param reason why not by a better path; empty where it is the best
  public record FileReport(Path file, Transport path, String reason) {}

  /// This transfer and one that came after it, as one.
  public TransferReport plus(TransferReport next) {
    Map<Transport, Long> sums = new HashMap<>(bytesByPath);
    next.bytesByPath.forEach((path, bytes) -> sums.merge(path, bytes, Long::sum));
    Set<FileReport> all = new LinkedHashSet<>(files);
    all.addAll(next.files);
    return new TransferReport(
        sums,
        directBytes + next.directBytes,
        unknownBytes + next.unknownBytes,
        reads + next.reads,
        List.copyOf(all),
        elapsed.plus(next.elapsed));
  }

  /// Bytes of all paths together.
  public long bytes() {
    return bytesByPath.values().stream().mapToLong(Long::longValue).sum();
  }

  /// Bytes that took `path`.
  public long bytes(Transport path) {
    return bytesByPath.getOrDefault(path, 0L);
  }

  /// 10⁹ bytes a second.
  public double gigabytesPerSecond() {
    return (double) bytes() / Math.max(1, elapsed.toNanos());
  }
}
