// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.convert;

import dev.gantry.cli.internal.input.Input;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.WrittenFiles;
import dev.gantry.core.Location;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.torch.NewDcp;
import dev.gantry.formats.internal.weights.TensorSources;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.nio.file.Path;

/// Writes weights as a folder of `torch.distributed.checkpoint`.
public record DcpConversion(WeightsCatalogue old, Path output) {
  public WrittenFiles run(GantrySession session) {
    Input.requireNoShards(session, output);
    Input.requireNoWeights(session, output);
    old.verify(session);
    try (TensorSources sources = TensorSources.of(session, old)) {
      NewDcp made = NewDcp.of(output, sources.tensors());
      try (Progress bar = new Progress("convert", made.totalBytes())) {
        return WrittenFiles.of(
            Location.of(output),
            made.write(session, WriteOptions.defaults().withChecksums(false).withProgress(bar)));
      }
    }
  }
}
