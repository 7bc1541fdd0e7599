// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.soak;

import ai.djl.ndarray.NDManager;
import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.RangeServer.Answer;
import java.nio.file.Path;
import java.util.Random;

/// Loads weights from an HTTP server, without a cache and through a cache that is too small for
/// all files. The server sends wrong answers if the fault says so.
final class RemoteReads extends Activity {
  private static final Fault[] FAULTS = {
    Fault.CANCEL, Fault.INTERRUPT, Fault.SESSION, Fault.CONSUMER, Fault.MANAGER, Fault.ANSWERS
  };
  private static final Answer[] WRONG = {
    Answer.HALF,
    Answer.HALF_WITHOUT_LENGTH,
    Answer.WITHOUT_LENGTH,
    Answer.WHOLE_FILE,
    Answer.ONE_BYTE_MORE,
    Answer.OTHER_ETAG,
    Answer.OTHER_RANGE,
    Answer.NO_RANGE,
    Answer.NOT_FOUND,
    Answer.FORBIDDEN,
    Answer.UNSATISFIABLE,
    Answer.UNAVAILABLE,
    Answer.CLOSED,
    Answer.CLOSED,
    Answer.REDIRECT
  };
  private static final int FILES = 3;

  private final RangeServer server = new RangeServer();
  private final Location[] files = new Location[FILES];
  private final Path cache;

  RemoteReads(Scene scene, int number) {
    super(scene, number);
    cache = scene.folder().resolve("cache-" + number);
    for (int i = 0; i < FILES; i++) {
      files[i] = server.put("known-" + i + ".safetensors", scene.weights().bytes());
    }
  }

  @Override
  void round() throws Exception {
    boolean cached = random.nextBoolean();
    Location file = files[random.nextInt(FILES)];
    attempt(
        cached ? "remote load through a cache" : "remote load",
        anyOf(FAULTS),
        trial -> load(trial, file, cached));
  }

  private void load(Trial trial, Location file, boolean cached) {
    server.answer(_ -> Answer.RIGHT);
    if (trial.fault() == Fault.ANSWERS) {
      Random answers = new Random(random.nextLong());
      int oneIn = 2 + random.nextInt(40);
      server.answer(
          _ -> answers.nextInt(oneIn) == 0 ? WRONG[answers.nextInt(WRONG.length)] : Answer.RIGHT);
    }
    try (GantrySession own = GantrySession.open()) {
      GantrySession session = trial.fault() == Fault.SESSION ? trial.session() : own;
      if (cached) {
        session.cacheRemoteFiles(cache, scene.weights().bytes().length * 2L);
      }
      try (Weights weights = Weights.open(file.toString(), session);
          NDManager manager = trial.manager(device)) {
        LoadOptions options =
            LoadOptions.builder()
                .optThreads(1 + random.nextInt(4))
                .optCancellation(trial.cancellation())
                .optProgress(trial.progress())
                .build();
        scene.tally().verified(scene.weights().verify(weights.load(manager, options)));
      }
    }
  }

  @Override
  public void close() {
    server.close();
  }
}
