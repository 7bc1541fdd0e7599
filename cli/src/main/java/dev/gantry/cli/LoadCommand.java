// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import dev.gantry.cli.internal.input.Input;
import dev.gantry.cli.internal.output.LoadRuns;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.resident.ResidentWeights;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.DevicePreparation;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.checkpoint.RecordedSums;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `load`: measures how fast weights are loaded into memory.
@Command(name = "load", description = "Loads weights and prints the time and the rate.")
final class LoadCommand extends ReportCommand {
  @Parameters(
      paramLabel = "FILE",
      description = "Weights: a file, a folder or an index.json, or an http or https URL.")
  private Location file;

  @Option(
      names = "--device",
      paramLabel = "DEVICE",
      split = ",",
      description =
          "host or cuda:N, or several, such as cuda:0,cuda:1; by default the first GPU, or host if"
              + " there is no GPU.")
  private @Nullable List<Device> devices;

  @Option(names = "--repeat", paramLabel = "N", defaultValue = "1", description = "Load N times.")
  private int repeat;

  @Option(
      names = "--transport",
      paramLabel = "T",
      description =
          "The only transport to use: ${COMPLETION-CANDIDATES}; by default chosen for each file and"
              + " range.")
  private @Nullable Transport transport;

  @Option(
      names = "--cache",
      paramLabel = "POLICY",
      defaultValue = "BY_RESIDENCY",
      description = "Use of the page cache: ${COMPLETION-CANDIDATES}; ${DEFAULT-VALUE} by default.")
  private CachePolicy cache;

  @Option(
      names = "--threads",
      paramLabel = "N",
      description = "The number of concurrent readers; by default chosen for the transport.")
  private @Nullable Integer threads;

  @Option(
      names = "--request-mib",
      paramLabel = "N",
      description = "The size of one read in MiB; by default chosen for the transport.")
  private @Nullable Integer requestMib;

  @Option(
      names = "--verify",
      description =
          "Compare each tensor with its checksum while it is read. The checksums come from a"
              + " checkpoint's manifest, or from `index`.")
  private boolean verify;

  @Override
  void checkOptions() {
    options();
    if (ResidentWeights.isServer(file)) {
      refuse("--verify", verify, "; verify the files that their server loads");
      refuse("--transport", transport != null, "");
    }
    // The devices are opened while the weights' headers are read.
    if (devices == null) {
      DevicePreparation.begin(GantrySession::bestDevice);
    } else {
      devices.forEach(device -> DevicePreparation.begin(() -> device));
    }
  }

  private void refuse(String option, boolean given, String advice) {
    if (given) {
      throw new MisuseException(
          option
              + " must not be given for resident weights (was given for "
              + file
              + "): nothing is read"
              + advice);
    }
  }

  private List<Device> devices() {
    return devices == null ? List.of(GantrySession.bestDevice()) : devices;
  }

  @Override
  LoadRuns report(GantrySession session) {
    TransferOptions options = options();
    WeightsCatalogue weights = Input.weights(session, file);
    List<StoredTensor> tensors = List.copyOf(weights.tensors().values());
    List<Device> targets = devices();
    List<KnownChecksums.Known> sums = verify ? RecordedSums.of(session, weights) : List.of();
    List<LoadRuns.Run> runs = new ArrayList<>();
    while (runs.size() < repeat) {
      long start = System.nanoTime();
      List<LoadedTensors> loaded;
      try (Progress bar = new Progress("load", weights.totalBytes())) {
        loaded =
            LoadedTensors.loadOnEach(
                session,
                tensors,
                targets,
                options.withProgress(bar).withChecksums(verify ? new KnownChecksums(sums) : null));
      }
      double seconds = (System.nanoTime() - start) / 1e9;
      LiveResources.Snapshot held = LiveResources.snapshot();
      runs.add(
          new LoadRuns.Run(
              seconds, loaded.getFirst().report(), held.hostBytes() + held.deviceBytes()));
      Cleanup.forEach(loaded, LoadedTensors::close);
    }
    return new LoadRuns(targets, weights.totalBytes(), runs, LiveResources.mostUsed(), verify);
  }

  private TransferOptions options() {
    TransferOptions options = TransferOptions.defaults().withCachePolicy(cache);
    if (transport != null) {
      options = options.withTransport(transport);
    }
    if (threads != null) {
      MisuseException.requireRange("--threads", threads, 1, TransferOptions.MAX_THREADS);
      options = options.withThreads(threads);
    }
    if (requestMib != null) {
      MisuseException.requireRange(
          "--request-mib", requestMib, 1, PlanLimits.MAX_REQUEST_BYTES >> 20);
      options = options.withLimits(PlanLimits.DEFAULT.withRequestBytes((long) requestMib << 20));
    }
    MisuseException.requireRange("--repeat", repeat, 1, Integer.MAX_VALUE);
    return options;
  }
}
