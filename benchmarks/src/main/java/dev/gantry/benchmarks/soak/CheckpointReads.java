// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.soak;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import dev.gantry.benchmarks.harness.WrongBytesException;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.djl.Checkpoints;
import dev.gantry.djl.Weights;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import java.util.List;
import java.util.concurrent.TimeUnit;

/// Loads checkpoints while a training saves new ones and removes old ones.
final class CheckpointReads extends Activity {
  private final Saves saves;

  CheckpointReads(Scene scene, int number, Saves saves) {
    super(scene, number);
    this.saves = saves;
  }

  @Override
  void round() throws Exception {
    List<StoredCheckpoint> all = Checkpoints.at(saves.folder(), scene.session()).list();
    if (all.isEmpty()) {
      TimeUnit.MILLISECONDS.sleep(10);
    } else {
      attempt("load of a checkpoint beside saves", Fault.NONE, _ -> read(all));
    }
  }

  private void read(List<StoredCheckpoint> all) {
    StoredCheckpoint checkpoint = all.get(random.nextInt(all.size()));
    try (Weights weights = Weights.open(checkpoint.folder(), scene.session());
        NDManager manager = NDManager.newBaseManager(device, "PyTorch")) {
      int sum = 0;
      for (NDArray array : weights.load(manager)) {
        sum += Saves.sum(array.getName(), array);
      }
      Integer expected = saves.sums().get(checkpoint.step());
      if (expected == null || expected != sum) {
        throw new WrongBytesException(
            "the checkpoint of step " + checkpoint.step() + " is not of its step");
      }
      scene.tally().verified(saves.bytes());
    } catch (TransferException e) {
      // The training has removed the checkpoint.
      if (!e.isNotFound()) {
        throw e;
      }
    } catch (MalformedFileException e) {
      // The training is removing the checkpoint: its folder is empty.
      if (!e.kind().equals("no-weights")) {
        throw e;
      }
    }
  }
}
