// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import dev.gantry.core.Device;
import dev.gantry.core.GantryException;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.resident.ResidentImage;
import dev.gantry.core.internal.resident.ResidentServer;
import dev.gantry.core.internal.resident.ResidentWeights;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.checkpoint.CheckpointFolder;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import dev.gantry.formats.internal.weights.ResidentFiles;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// `serve-weights`: keeps weights in memory for other processes.
@Command(
    name = "serve-weights",
    description =
        "Keeps weights in memory, on a GPU or the CPU, for other processes of this user, which open"
            + " them as gantry-resident:///path/to/socket. The command runs until it is stopped.")
final class ServeWeightsCommand implements Runnable {
  /// The name of the group in a training's checkpoint that holds the weights.
  private static final String MODEL = "model";

  @Spec private CommandSpec spec;

  @Parameters(
      paramLabel = "FOLDER",
      description =
          "Weights: a file or folder, also as an s3, http or https URL; or a folder of checkpoints,"
              + " whose latest checkpoint is kept in memory.")
  private Location folder;

  @Mixin private DeviceOption device;

  @Option(
      names = "--socket",
      paramLabel = "PATH",
      description =
          "The socket to listen on; by default NAME.sock in $$XDG_RUNTIME_DIR/gantry or"
              + " ~/.cache/gantry, where NAME is the name of FOLDER.")
  private @Nullable Path socket;

  @Option(
      names = "--every",
      paramLabel = "SECONDS",
      defaultValue = "2",
      description =
          "How often to check for replaced local weights; ${DEFAULT-VALUE} by default, 0 for never."
              + " New clients then get the new weights. The old weights are freed when their last"
              + " client disconnects.")
  private int every;

  @Override
  public void run() {
    MisuseException.requireRange("--every", every, 0, 86_400);
    if (ResidentWeights.isServer(folder)) {
      throw new MisuseException(
          "FOLDER must be files (was " + folder + "): another server keeps these in memory");
    }
    device.prepare();
    Path path = socket == null ? ResidentServer.defaultSocket(name()) : socket;
    try (GantrySession session = GantrySession.open();
        ResidentServer server = ResidentServer.listen(path, this::say)) {
      Kept kept = keep(session, 1, current(session));
      server.publish(kept.image());
      say("clients open " + server.location());
      Thread shutdown = Thread.ofPlatform().unstarted(server::close);
      Runtime.getRuntime().addShutdownHook(shutdown);
      Thread watch = Thread.ofPlatform().daemon().unstarted(() -> watch(session, server, kept));
      if (every > 0 && folder instanceof Location.Local) {
        watch.start();
      }
      server.run();
    }
  }

  /// Opens the model of the folder's latest checkpoint, or else the folder's own weights.
  private WeightsCatalogue current(GantrySession session) {
    if (folder instanceof Location.Local(Path path, _) && Files.isDirectory(path)) {
      Optional<CheckpointFolder> latest = CheckpointStore.list(session, path).latest();
      if (latest.isPresent()) {
        return latest.get().open(MODEL);
      }
    }
    return WeightsFormats.open(session, folder);
  }

  private record Kept(ResidentImage image, List<Object> state) {}

  private Kept keep(GantrySession session, int version, WeightsCatalogue weights) {
    long start = System.nanoTime();
    Device target = device.device();
    List<Object> state = state(session, weights);
    ResidentFiles files = ResidentFiles.of(session, weights);
    ResidentImage image =
        session.keepResident(
            version, files.entry(), files.sources(), target, TransferOptions.defaults());
    say(
        String.format(
            Locale.ROOT,
            "version %d: %,d tensors, %,d bytes on %s in %.2f s",
            version,
            weights.tensors().size(),
            image.bytes(),
            target,
            (System.nanoTime() - start) / 1e9));
    return new Kept(image, state);
  }

  /// Returns the files of the weights and the identity of each, by which changes are noticed.
  private static List<Object> state(GantrySession session, WeightsCatalogue weights) {
    List<Object> state = new ArrayList<>();
    for (Location file : weights.files()) {
      try (var opened = session.openFile(file)) {
        state.add(file);
        state.add(opened.identity());
      }
    }
    return state;
  }

  /// Checks from time to time whether the files have changed. Changed files are served once two
  /// checks in a row have found the same ones, because files that are still being written must
  /// not be loaded.
  private void watch(GantrySession session, ResidentServer server, Kept first) {
    List<Object> served = first.state();
    List<Object> seen = served;
    int version = 1;
    String told = "";
    while (true) {
      try {
        TimeUnit.SECONDS.sleep(every);
        WeightsCatalogue weights = current(session);
        List<Object> now = state(session, weights);
        if (!now.equals(served) && now.equals(seen)) {
          Kept next = keep(session, version + 1, weights);
          server.publish(next.image());
          version++;
          served = next.state();
        }
        seen = now;
        told = "";
      } catch (InterruptedException _) {
        return;
      } catch (RuntimeException | OutOfMemoryError e) {
        // While files are replaced, some may be missing or incomplete, so the old weights stay.
        String reason = String.valueOf(e instanceof GantryException ? e.getMessage() : e);
        if (!reason.equals(told)) {
          say("the old weights stay: " + reason);
          told = reason;
        }
      }
    }
  }

  private String name() {
    String last = folder.fileName();
    if (folder instanceof Location.Local(Path path, _)) {
      Path normal = path.toAbsolutePath().normalize().getFileName();
      last = normal == null ? "" : normal.toString();
    }
    return last.isEmpty() ? "weights" : last;
  }

  private void say(String line) {
    PrintWriter out = spec.commandLine().getOut();
    out.println(line);
    out.flush();
  }
}
