// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.soak;

import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import dev.gantry.benchmarks.harness.WrongBytesException;
import dev.gantry.benchmarks.soak.KnownSamples.Kind;
import dev.gantry.djl.GantryDataset;
import java.util.Iterator;
import org.jspecify.annotations.Nullable;

/// Takes the batches of epochs that are interrupted at random and resumed. No sample may be
/// missing, occur twice, or have a wrong byte.
final class Epochs extends Activity {
  private static final Fault[] FAULTS = {
    Fault.INTERRUPT, Fault.FILES, Fault.SESSION, Fault.CONSUMER, Fault.MANAGER
  };

  private final Kind kind;
  private final KnownSamples known;

  /// The position at which to resume; null for the beginning of an epoch.
  private @Nullable String state;

  private int taken;

  Epochs(Scene scene, int number, Kind kind) {
    super(scene, number);
    this.kind = kind;
    this.known = scene.samples();
  }

  @Override
  void round() throws Exception {
    attempt(kind.title, anyOf(FAULTS), this::take);
  }

  private void take(Trial trial) {
    try (NDManager manager = NDManager.newBaseManager(device, "PyTorch");
        GantryDataset dataset =
            known.open(
                kind,
                trial.session(),
                1 + random.nextInt(3),
                images -> {
                  trial.consume();
                  return images;
                })) {
      if (state != null) {
        dataset.restore(state);
      }
      int most = random.nextInt(2 * known.count() / 48);
      Iterator<Batch> batches = dataset.getData(manager).iterator();
      for (int i = 0; i < most; i++) {
        if (i == most / 2 && trial.closes(manager)) {
          requireEnd(batches);
          return;
        }
        if (!batches.hasNext()) {
          throw new WrongBytesException(kind.title + " ended after " + taken + " samples");
        }
        try (Batch batch = batches.next()) {
          int samples = known.verify(kind, taken, batch);
          taken += samples;
          state = dataset.state();
          scene.tally().verified(known.bytes(samples));
        }
        if (taken == known.count()) {
          state = null;
          taken = 0;
          requireEnd(batches);
          return;
        }
      }
      // The epoch is interrupted here: the dataset is closed together with the batches that it has
      // read ahead.
    }
  }

  private void requireEnd(Iterator<Batch> batches) {
    if (batches.hasNext()) {
      throw new WrongBytesException(kind.title + " goes on after its end");
    }
  }
}
