// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.djl.Checkpoints;
import dev.gantry.djl.Weights;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// Loads the latest weights of a training that runs in another process, as a server would. It
/// needs no lock. To choose the checkpoint with the best metric instead, use Checkpoints.openBest.
///
/// `FOLDER` is the folder to which SaveAndResume saves. The program looks for a new checkpoint
/// `TIMES` times, once a second:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' FollowTraining.java FOLDER TIMES
/// ```
public final class FollowTraining {
  private FollowTraining() {}

  public static void main(String[] arguments) throws InterruptedException {
    Usage.check("FollowTraining.java FOLDER TIMES", arguments);
    Path folder = Path.of(arguments[0]);
    List<Location> loaded = List.of();
    for (int times = Integer.parseInt(arguments[1]); times > 0; times--) {
      loaded = follow(folder, loaded);
      Thread.sleep(Duration.ofSeconds(1));
    }
  }

  /// @param loaded the files that were loaded last
  /// @return the files that are loaded now
  static List<Location> follow(Path folder, List<Location> loaded) {
    Optional<Weights> latest = Checkpoints.at(folder).openLatest();
    if (latest.isEmpty()) {
      System.out.println("no checkpoint yet");
      return loaded;
    }
    try (Weights weights = latest.get();
        NDManager manager = NDManager.newBaseManager()) {
      if (!weights.files().equals(loaded)) {
        for (NDArray array : weights.load(manager)) {
          System.out.println(array.getName() + " has the mean " + array.mean().getFloat());
        }
      }
      return new ArrayList<>(weights.files());
    } catch (TransferException e) {
      // The training removed this checkpoint after a newer one. The next look finds that.
      System.out.println(e.getMessage());
      return loaded;
    }
  }
}
