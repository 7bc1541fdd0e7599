// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import dev.gantry.core.Memory;
import dev.gantry.core.TransferException;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.TensorInfo;
import dev.gantry.djl.TensorSelection;
import dev.gantry.djl.Weights;
import dev.gantry.djl.raw.RawFile;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/// Loads a tensor into memory that is there already: an array, rows of one, a segment. Then writes and
/// reads raw bytes of a file.
///
/// `FOLDER` holds weights, `NAME` is one of their F32 tensors with rows, and `FILE` is new or a file to
/// change:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' FillMemory.java FOLDER NAME FILE
/// ```
public final class FillMemory {
  private FillMemory() {}

  public static void main(String[] arguments) {
    Usage.check("FillMemory.java FOLDER NAME FILE", arguments);
    Path folder = Path.of(arguments[0]);
    String name = arguments[1];
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(folder)) {
      TensorInfo tensor = Objects.requireNonNull(weights.tensors().get(name), name);
      NDArray array = manager.zeros(new Shape(tensor.shape().toArray()), DataType.FLOAT32);
      fill(weights, name, array);
      fillRow(weights, name, array);
      System.out.println("the sum is " + array.sum().getFloat());
      System.out.println("the first value is " + fillSegment(weights, name, array.size()));
      exchange(Path.of(arguments[2]), array);
    }
  }

  private static void fill(Weights weights, String name, NDArray array) {
    try {
      weights.copyTo(Map.of(name, array));
    } catch (TransferException.IncompleteRead failed) {
      System.err.println("only these are complete: " + failed.complete());
      throw failed;
    }
  }

  /// The tensor's last row into the array's first one.
  private static void fillRow(Weights weights, String name, NDArray array) {
    long rows = array.getShape().get(0);
    LoadOptions lastRow =
        LoadOptions.builder()
            .optSelection(TensorSelection.names(List.of(name)).rows(name, rows - 1, rows))
            .build();
    // A slice of rows is a view of the same memory.
    weights.copyTo(Map.of(name, array.get("0:1")), lastRow);
  }

  private static float fillSegment(Weights weights, String name, long elements) {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment segment = arena.allocate(ValueLayout.JAVA_FLOAT, elements);
      weights.copyToMemory(Map.of(name, new Memory.OnHost(segment)), LoadOptions.defaults());
      return segment.get(ValueLayout.JAVA_FLOAT, 0);
    }
  }

  private static void exchange(Path path, NDArray array) {
    RawFile file = RawFile.of(path);
    // In place, and on the disk when this returns.
    file.write(4096, array);
    NDArray copy = array.zerosLike();
    file.read(4096, copy);
    System.out.println("the copy is the same: " + copy.contentEquals(array));
  }
}
