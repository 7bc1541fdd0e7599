// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import ai.djl.ndarray.types.DataType;
import dev.gantry.cli.internal.digest.CastDigests;
import dev.gantry.cli.internal.digest.RecordDigests;
import dev.gantry.cli.internal.digest.SampleDigests;
import dev.gantry.cli.internal.digest.TensorDigests;
import dev.gantry.cli.internal.input.Input;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `digest`: prints the digests of loaded bytes, by which a user checks that the right bytes
/// arrive.
@Command(
    name = "digest",
    description =
        "Loads through the engine and prints the SHA-256 of every tensor, of every field of shards,"
            + " of every TFRecord record, or of every field of WebDataset samples. The CPU reads"
            + " and checks records and samples, whatever the device.")
final class DigestCommand extends ReportCommand {
  @Parameters(paramLabel = "FILE", description = Input.DESCRIPTION)
  private Location file;

  @Option(
      names = "--as",
      paramLabel = "TYPE",
      description =
          "Print digests of the values as ${COMPLETION-CANDIDATES}: floating-point and quantised"
              + " tensors of weights are cast to this type, integers stay as they are.")
  private @Nullable Type type;

  /// A type to which floating-point and quantised tensors are cast.
  enum Type {
    F32(DataType.FLOAT32),
    BF16(DataType.BFLOAT16),
    F16(DataType.FLOAT16);

    final DataType type;

    Type(DataType type) {
      this.type = type;
    }
  }

  @Mixin private DeviceOption device;

  @Override
  Report report(GantrySession session) {
    Input input = Input.open(session, file);
    if (type != null && !(input instanceof Input.Weights)) {
      throw new MisuseException("--as applies only to weights (FILE has samples: " + file + ")");
    }
    return switch (input) {
      case Input.Weights(WeightsCatalogue weights) ->
          type == null
              ? TensorDigests.of(session, weights, device.device())
              : CastDigests.of(session, file, weights, type.type, device.ofDjl());
      case Input.Shards(ShardSet set) -> TensorDigests.of(session, set, device.device());
      case Input.Records(List<Location> files) -> RecordDigests.of(session, files);
      case Input.Archives(List<Location> files) -> SampleDigests.of(session, files);
    };
  }
}
