// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.soak;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import dev.gantry.benchmarks.harness.WrongBytesException;
import dev.gantry.djl.Weights;
import dev.gantry.djl.WeightsWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/// Writes one file of weights again and again. After any fault, the name must refer to the old
/// file or to the new one, complete.
final class Writes extends Activity {
  private static final Fault[] FAULTS = {
    Fault.CANCEL, Fault.INTERRUPT, Fault.FILES, Fault.SESSION, Fault.CONSUMER
  };
  private static final int TENSORS = 4;
  private static final int ELEMENTS = 400_003;

  private final Path folder;
  private final Path file;
  private int written = -1;

  Writes(Scene scene, int number) throws IOException {
    super(scene, number);
    folder = Files.createDirectories(scene.folder().resolve("writes-" + number));
    file = folder.resolve("model.safetensors");
  }

  @Override
  void round() throws Exception {
    int version = random.nextInt(1 << 20);
    boolean good = attempt("write", anyOf(FAULTS), trial -> write(trial, version));
    attempt("load of what was written", Fault.NONE, _ -> verify(version, good));
  }

  private void write(Trial trial, int version) {
    try (NDManager manager = NDManager.newBaseManager(device, "PyTorch")) {
      Map<String, NDArray> arrays = new LinkedHashMap<>();
      for (int i = 0; i < TENSORS; i++) {
        arrays.put("tensor." + i, manager.full(new Shape(ELEMENTS), version + i, DataType.FLOAT32));
      }
      WeightsWriter.builder()
          .setFile(file)
          .optSession(trial.session())
          .optThreads(1 + random.nextInt(3))
          .optPageCache(random.nextBoolean())
          .optCancellation(trial.cancellation())
          .optProgress(trial.progress())
          .build()
          .write(arrays);
    }
  }

  /// @param good whether the write succeeded; otherwise the file may be the old or the new one
  private void verify(int version, boolean good) throws IOException {
    if (!Files.exists(file)) {
      if (good || written >= 0) {
        throw new WrongBytesException(file + " is not there");
      }
      return;
    }
    try (Weights weights = Weights.open(file, scene.session());
        NDManager manager = NDManager.newBaseManager(device, "PyTorch")) {
      NDList list = weights.load(manager);
      int found = (int) list.getFirst().getFloat(0);
      if (found != version && (good || found != written)) {
        throw new WrongBytesException(
            "the file has version %d instead of %d or %d".formatted(found, version, written));
      }
      for (int i = 0; i < TENSORS; i++) {
        float[] numbers = list.get("tensor." + i).toFloatArray();
        for (float number : numbers) {
          if (number != found + i) {
            throw new WrongBytesException(
                "tensor.%d has %s instead of %d".formatted(i, number, found + i));
          }
        }
        scene.tally().verified((long) numbers.length * Float.BYTES);
      }
      written = found;
    }
    try (Stream<Path> all = Files.list(folder)) {
      List<Path> others = all.filter(each -> !each.equals(file)).toList();
      if (!others.isEmpty()) {
        throw new WrongBytesException("a write left " + others);
      }
    }
  }
}
