// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.convert;

import dev.gantry.cli.internal.input.Input;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.WrittenFiles;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.UploadFolder;
import dev.gantry.formats.internal.safetensors.DataFileOptions;
import dev.gantry.formats.internal.safetensors.NewSafetensors;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.internal.safetensors.SafetensorsUpload;
import dev.gantry.formats.internal.weights.TensorSources;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Writes weights as safetensors: to one file, or to a folder of files with an index.
///
/// @param input the location that the weights were read from
/// @param shardBytes the most bytes of a file; null for the default
public record WeightsConversion(
    WeightsCatalogue old, Location input, Location output, @Nullable Long shardBytes) {
  static final String ONE_FILE = ".safetensors";

  public WrittenFiles run(GantrySession session) throws IOException {
    checkOutput(session);
    return switch (output) {
      case Location.Local(Path target, _) -> {
        old.verify(session);
        try (TensorSources sources = TensorSources.of(session, old)) {
          yield write(session, layOut(sources.tensors(), target));
        }
      }
      case Location.Remote target -> {
        SafetensorsUpload upload = new SafetensorsUpload(session, target, isOneFile());
        old.verify(session);
        try (TensorSources sources = TensorSources.of(session, old);
            UploadFolder folder = UploadFolder.make()) {
          Path made = isOneFile() ? folder.file(target.fileName()) : folder.path();
          yield upload(upload, folder, layOut(sources.tensors(), made));
        }
      }
    };
  }

  private static WriteOptions options(Progress bar) {
    return WriteOptions.defaults().withChecksums(false).withProgress(bar);
  }

  private WrittenFiles write(GantrySession session, NewSafetensors made) {
    try (Progress bar = new Progress("convert", made.totalBytes())) {
      return WrittenFiles.of(output, made.write(session, options(bar)));
    }
  }

  private WrittenFiles upload(SafetensorsUpload upload, UploadFolder folder, NewSafetensors made) {
    long start = System.nanoTime();
    try (Progress bar = new Progress("convert", made.totalBytes())) {
      List<SafetensorsUpload.Uploaded> files = upload.upload(folder, made, options(bar));
      return new WrittenFiles(
          output,
          files.stream()
              .map(file -> new WrittenFiles.WrittenFile(file.file(), file.bytes()))
              .toList(),
          (System.nanoTime() - start) / 1e9);
    }
  }

  private NewSafetensors layOut(List<NewTensor> tensors, Path target) {
    if (isOneFile()) {
      return NewSafetensors.file(target, tensors, old.metadata());
    }
    DataFileOptions options = DataFileOptions.defaults();
    return NewSafetensors.folder(
        target,
        tensors,
        old.metadata(),
        shardBytes == null ? options : options.withFileBytes(shardBytes));
  }

  private boolean isOneFile() {
    return output.fileName().endsWith(ONE_FILE);
  }

  private void checkOutput(GantrySession session) throws IOException {
    if (isOneFile() && shardBytes != null) {
      throw new MisuseException(
          "--shard-bytes must not be given if OUT is one file (was " + output + ")");
    }
    if (NewSafetensors.isNamedLikeAnother(output.fileName())
        && !(output instanceof Location.Local(Path target, _) && Files.exists(target))) {
      throw new MisuseException(
          "OUT must end in "
              + ONE_FILE
              + ", or be a folder: no other files of weights are written (was "
              + output
              + ")");
    }
    switch (output) {
      case Location.Local(Path target, _) -> checkOutput(session, target);
      case Location.Remote target -> checkOutput(target);
    }
  }

  private void checkOutput(GantrySession session, Path target) throws IOException {
    Path parent = target.toAbsolutePath().getParent();
    if (isOneFile()
        && parent != null
        && Files.exists(parent)
        && input instanceof Location.Local(Path folder, _)
        && Files.isSameFile(parent, folder)) {
      throw partOfInput(output);
    }
    Path into = isOneFile() ? parent : target;
    if (into != null) {
      Input.requireNoShards(session, into);
    }
    for (Location file : old.files()) {
      if (file instanceof Location.Local(Path local, _)
          && Files.exists(target)
          && Files.isSameFile(local, target)) {
        throw new MisuseException("OUT must not be a file of IN (was " + target + ")");
      }
    }
  }

  private void checkOutput(Location.Remote target) {
    boolean within =
        old.files().stream()
            .anyMatch(file -> file.sibling("").toString().equals(target.sibling("").toString()));
    if (isOneFile() && within) {
      throw partOfInput(target);
    }
  }

  private static MisuseException partOfInput(Location target) {
    return new MisuseException(
        "OUT must not lie in the folder of IN, of which it would become a part (was "
            + target
            + ")");
  }
}
