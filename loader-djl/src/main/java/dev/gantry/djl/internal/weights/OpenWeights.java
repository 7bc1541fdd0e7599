// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.resident.ResidentWeights;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.torch.StartedEngine;
import dev.gantry.formats.internal.checkpoint.CheckpointListing;
import dev.gantry.formats.internal.checkpoint.RecordedSums;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/// Weights whose headers were read.
///
/// @param sums the checksums of the tensors, for loads that compare them
/// @param alwaysVerify whether loads compare the checksums without being asked to
/// @param held the weights of a server, which stay mapped until [#close]; empty for weights of
///     files
public record OpenWeights(
    WeightsCatalogue contents,
    Supplier<List<KnownChecksums.Known>> sums,
    boolean alwaysVerify,
    Optional<ResidentWeights> held)
    implements AutoCloseable {
  /// Makes weights of files, which no server holds.
  public OpenWeights(
      WeightsCatalogue contents, Supplier<List<KnownChecksums.Known>> sums, boolean alwaysVerify) {
    this(contents, sums, alwaysVerify, Optional.empty());
  }

  /// Returns the same weights with another catalogue, such as one with other names.
  public OpenWeights named(WeightsCatalogue named) {
    return new OpenWeights(named, sums, alwaysVerify, held);
  }

  public static OpenWeights of(Location location, GantrySession session) {
    if (!ResidentWeights.isServer(location)) {
      session.prepareContext(StartedEngine::chosenDevice);
      WeightsCatalogue contents = open(session, location);
      return new OpenWeights(contents, () -> RecordedSums.of(session, contents), false);
    }
    ResidentWeights held = ResidentWeights.hold(location);
    return Cleanup.orUndo(
        () -> {
          session.prepareContext(held::device);
          WeightsCatalogue contents = WeightsFormats.open(session, held.entry());
          // A GPU that this process does not see is refused here, where the caller can still use
          // the files instead.
          Device _ = held.device();
          return new OpenWeights(contents, () -> refuse(location), false, Optional.of(held));
        },
        held::close);
  }

  private static WeightsCatalogue open(GantrySession session, Location location) {
    try {
      return WeightsFormats.open(session, location);
    } catch (MalformedFileException e) {
      String advice =
          e.kind().equals(WeightsFormats.NO_WEIGHTS)
              ? CheckpointListing.advice(session, location)
              : "";
      throw advice.isEmpty()
          ? e
          : new MalformedFileException(e.file(), e.offset(), e.kind(), e.detail() + advice);
    }
  }

  private static List<KnownChecksums.Known> refuse(Location location) {
    throw new MisuseException(
        "optVerify must be false for resident weights (was true, of "
            + location
            + "): nothing is read; verify the files that their server loads");
  }

  @Override
  public void close() {
    held.ifPresent(ResidentWeights::close);
  }
}
