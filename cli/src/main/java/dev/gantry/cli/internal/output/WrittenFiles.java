// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.output;

import dev.gantry.core.Location;
import dev.gantry.core.internal.commit.WriteReport;
import dev.gantry.formats.shards.Shard;
import dev.gantry.formats.shards.ShardSet;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/// Reports the files that a command has written. All of them are durable on a disk, or complete
/// in another store.
public record WrittenFiles(Location output, List<WrittenFile> files, double seconds)
    implements Report {
  public record WrittenFile(Location file, long bytes) {}

  /// @param start when writing began, by [System#nanoTime]
  public static WrittenFiles of(Path output, List<Path> files, long start) throws IOException {
    double seconds = (System.nanoTime() - start) / 1e9;
    List<WrittenFile> written = new ArrayList<>();
    for (Path file : files) {
      written.add(new WrittenFile(Location.of(file), Files.size(file)));
    }
    return new WrittenFiles(Location.of(output), written, seconds);
  }

  public static WrittenFiles of(Location output, WriteReport report) {
    return new WrittenFiles(
        output,
        report.files().stream()
            .map(file -> new WrittenFile(Location.of(file.file()), file.size()))
            .toList(),
        report.elapsed().toNanos() / 1e9);
  }

  /// Reports the files of a set of shards, with its index last.
  public static WrittenFiles of(Path output, ShardSet set, long start) throws IOException {
    List<Path> files = new ArrayList<>(set.shards().stream().map(Shard::file).toList());
    files.add(set.file());
    return of(output, files, start);
  }

  private long bytes() {
    return files.stream().mapToLong(WrittenFile::bytes).sum();
  }

  @Override
  public void print(PrintWriter out) {
    out.printf(
        Locale.ROOT,
        "%s: %,d file(s), %,d bytes, durable in %.3f s, %.2f GB/s%n",
        Table.line(output.toString()),
        files.size(),
        bytes(),
        seconds,
        bytes() / 1e9 / seconds);
  }

  @Override
  public Object json() {
    return Json.object().with("files", files).with("bytes", bytes()).with("seconds", seconds);
  }
}
