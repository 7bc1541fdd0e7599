// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import dev.gantry.cli.internal.contents.BuiltIndexes;
import dev.gantry.cli.internal.contents.CheckedIndexes;
import dev.gantry.cli.internal.contents.IndexState;
import dev.gantry.cli.internal.input.Input;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.index.TfRecordIndex;
import dev.gantry.formats.internal.safetensors.SafetensorsSums;
import dev.gantry.formats.internal.webdataset.StoredIndex;
import dev.gantry.formats.internal.webdataset.TarIndex;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `index`: indexes TFRecord files and tar archives, so that their records and samples can be
/// read by offset. For safetensors files, it writes checksums, so that loads can be verified.
@Command(
    name = "index",
    description =
        "Reads and checks TFRecord files and WebDataset archives, and writes an index beside each:"
            + " FILE.gantry-index."
            + " Beside safetensors files it writes checksums for `load --verify`:"
            + " FILE.gantry-sums.")
final class IndexCommand extends ReportCommand {
  @Parameters(
      arity = "1..*",
      paramLabel = "FILE",
      description =
          "TFRecord files and tar archives without compression, safetensors files, or folders of"
              + " them. TFRecord files and archives may also be s3 URLs; their indexes are"
              + " uploaded.")
  private List<Location> paths;

  @Option(
      names = "--check",
      description =
          "Write nothing; print whether each TFRecord file and archive has an up-to-date index.")
  private boolean check;

  @Override
  Report report(GantrySession session) throws IOException {
    List<Location> named =
        paths.stream().filter(path -> !SafetensorsSums.isSums(path.fileName())).toList();
    List<Path> weights = new ArrayList<>();
    List<Location> records = new ArrayList<>();
    List<Location> archives = new ArrayList<>();
    for (Location path : named.isEmpty() ? paths : named) {
      List<Path> found = Input.weightsFiles(session, path);
      List<Location> tars = Input.archives(session, path);
      weights.addAll(found);
      archives.addAll(tars);
      if (found.isEmpty() && tars.isEmpty()) {
        records.add(path);
      }
    }
    List<Location> files = records.isEmpty() ? List.of() : Input.recordFiles(session, records);
    if (check && !weights.isEmpty()) {
      throw new MisuseException(
          "--check applies only to TFRecord files and archives; `load --verify` checks weights");
    }
    if (check) {
      return new CheckedIndexes(
          Stream.concat(
                  files.stream()
                      .map(file -> new CheckedIndexes.Checked(file, IndexState.of(session, file))),
                  archives.stream()
                      .map(file ->
                          new CheckedIndexes.Checked(file, IndexState.ofArchive(session, file))))
              .toList());
    }
    List<BuiltIndexes.Built> built = new ArrayList<>();
    for (Location file : files) {
      built.add(build(session, file));
    }
    for (Location file : archives) {
      built.add(buildOfArchive(session, file));
    }
    List<BuiltIndexes.Summed> summed = new ArrayList<>();
    for (Path file : weights) {
      long start = System.nanoTime();
      int tensors = SafetensorsSums.build(session, file);
      summed.add(
          new BuiltIndexes.Summed(
              file, SafetensorsSums.sumsFile(file), tensors, (System.nanoTime() - start) / 1e9));
    }
    return new BuiltIndexes(built, summed);
  }

  private static BuiltIndexes.Built build(GantrySession session, Location file) throws IOException {
    long start = System.nanoTime();
    try (Progress bar =
        new Progress("index", file instanceof Location.Local ? Files.size(file.path()) : -1)) {
      TfRecordIndex.Summary summary =
          TfRecordIndex.build(file, TfRecordIndex.Options.defaults().withProgress(bar), session);
      return BuiltIndexes.Built.of(file, summary, (System.nanoTime() - start) / 1e9);
    }
  }

  private static BuiltIndexes.Built buildOfArchive(GantrySession session, Location file) {
    long start = System.nanoTime();
    try (Progress bar = Progress.ofRecords("index", List.of(file));
        TarIndex index = StoredIndex.build(session, file, bar)) {
      return BuiltIndexes.Built.of(
          file, IndexState.summary(index), (System.nanoTime() - start) / 1e9);
    }
  }
}
