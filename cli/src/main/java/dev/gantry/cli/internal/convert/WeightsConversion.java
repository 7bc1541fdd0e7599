// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.convert;

import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.WrittenFiles;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.commit.WriteReport;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.safetensors.DataFileOptions;
import dev.gantry.formats.internal.safetensors.NewSafetensors;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.internal.weights.TensorReading;
import dev.gantry.formats.internal.weights.TensorSources;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Writes weights as safetensors: to one file, or to a folder of files with an index.
///
/// @param input where the weights were found
/// @param shardBytes null for what is usual
public record WeightsConversion(
    WeightsCatalogue old, Location input, Path output, @Nullable Long shardBytes) {
  static final String ONE_FILE = ".safetensors";

  public WrittenFiles run(GantrySession session) throws IOException {
    checkOutput();
    TensorReading.verify(old);
    try (TensorSources sources = TensorSources.of(session, old)) {
      return write(session, layOut(sources.tensors()));
    }
  }

  private WrittenFiles write(GantrySession session, NewSafetensors made) {
    try (Progress bar = new Progress("convert", made.totalBytes())) {
      WriteOptions options = WriteOptions.defaults().withChecksums(false).withProgress(bar);
      WriteReport report = made.write(session, options);
      return new WrittenFiles(
          output,
          report.files().stream()
              .map(file -> new WrittenFiles.WrittenFile(file.file(), file.size()))
              .toList(),
          report.elapsed().toNanos() / 1e9);
    }
  }

  private NewSafetensors layOut(List<NewTensor> tensors) {
    if (isOneFile()) {
      return NewSafetensors.file(output, tensors, old.metadata());
    }
    DataFileOptions options = DataFileOptions.defaults();
    return NewSafetensors.folder(
        output,
        tensors,
        old.metadata(),
        shardBytes == null ? options : options.withFileBytes(shardBytes));
  }

  private boolean isOneFile() {
    return output.toString().endsWith(ONE_FILE);
  }

  private void checkOutput() throws IOException {
    if (isOneFile() && shardBytes != null) {
      throw new MisuseException("--shard-bytes must not be given where OUT is one file: " + output);
    }
    Path parent = output.toAbsolutePath().getParent();
    if (isOneFile()
        && parent != null
        && Files.exists(parent)
        && input instanceof Location.Local(Path folder, _)
        && Files.isSameFile(parent, folder)) {
      throw new MisuseException("OUT would be read as a part of IN: " + output);
    }
    for (Location file : old.files()) {
      if (file instanceof Location.Local(Path local, _)
          && Files.exists(output)
          && Files.isSameFile(local, output)) {
        throw new MisuseException("OUT is a file of IN: " + output);
      }
    }
  }
}
