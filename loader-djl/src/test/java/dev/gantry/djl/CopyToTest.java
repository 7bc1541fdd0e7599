// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import dev.gantry.core.DType;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.raw.RawFile;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.DoubleStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Loads into existing arrays, and writes from them, on DJL's default device: on CUDA, DJL's own
/// tensors on the GPU.
@ExtendWith(NoLeaks.class)
class CopyToTest {
  private static final int MANY = 500_000;

  @TempDir private Path folder;
  private NDManager manager;
  private Weights weights;
  private Path file;

  @BeforeEach
  void open() throws IOException {
    manager = NDManager.newBaseManager();
    file =
        new WeightsFile()
            .vector("odd", DType.U8, 1, 2, 3)
            .tensor("grid", DType.F32, TensorShape.of(3, 2), 1, 2, 3, 4, 5, 6)
            .vector("half", DType.BF16, 1, -2)
            .raw("eight", DType.F8_E4M3, TensorShape.of(2), (byte) 0x38, (byte) 0x40)
            .vector("many", DType.F32, DoubleStream.iterate(0, i -> i + 1).limit(MANY).toArray())
            .write(folder.resolve("w.safetensors"));
    weights = Weights.open(file);
  }

  @AfterEach
  void close() {
    weights.close();
    manager.close();
  }

  @Test
  void arraysKeepTheirMemoryAndGetTheValues() {
    NDArray grid = manager.zeros(new Shape(3, 2));
    NDArray many = manager.create(new Shape(MANY));
    NDArray view = grid.reshape(6);
    AtomicReference<TransferReport> told = new AtomicReference<>();
    TransferReport report =
        weights.copyTo(
            Map.of("grid", grid, "many", many), LoadOptions.builder().optReport(told::set).build());
    assertThat(told).hasValue(report);
    assertThat(report.bytes()).isGreaterThanOrEqualTo(4 * MANY);
    assertThat(grid.toFloatArray()).containsExactly(1, 2, 3, 4, 5, 6);
    assertThat(view.toFloatArray()).as("the same memory").containsExactly(1, 2, 3, 4, 5, 6);
    assertThat(many.getFloat(MANY - 1)).isEqualTo(MANY - 1);
    assertThat(many.getFloat(77_777)).isEqualTo(77_777);
  }

  @Test
  void arraysThatGantryLoadedAreFilledToo() {
    try (var loaded = weights.load(manager)) {
      for (NDArray array : loaded) {
        if (array.getDataType() == DataType.FLOAT32) {
          array.muli(0);
        }
      }
      Map<String, NDArray> arrays = new LinkedHashMap<>();
      loaded.forEach(array -> arrays.put(array.getName(), array));
      weights.copyTo(arrays);
      assertThat(arrays.get("grid").toFloatArray()).containsExactly(1, 2, 3, 4, 5, 6);
      assertThat(arrays.get("half").toType(DataType.FLOAT32, true).toFloatArray())
          .containsExactly(1, -2);
      assertThat(arrays.get("eight").toByteArray()).containsExactly(0x38, 0x40);
    }
  }

  @Test
  void rowsGoIntoRows() {
    NDArray target = manager.zeros(new Shape(5, 2));
    weights.copyTo(
        Map.of("grid", target.get("2:4")),
        LoadOptions.builder().optSelection(TensorSelection.all().rows("grid", 1, 3)).build());
    assertThat(target.toFloatArray()).containsExactly(0, 0, 0, 0, 3, 4, 5, 6, 0, 0);
  }

  @Test
  void mistakesAreSaidAndNothingChanges() {
    NDArray wrongShape = manager.zeros(new Shape(2, 3));
    NDArray grid = manager.zeros(new Shape(3, 2));
    assertThatThrownBy(() -> weights.copyTo("grid", wrongShape))
        .isInstanceOf(MisuseException.class)
        .hasMessage(
            "tensor 'grid' is F32 [3, 2], and the array for it F32 [2, 3]: copyTo changes neither,"
                + " so give an array of the tensor's type and shape, or load the tensor and cast or"
                + " reshape it");
    NDArray wrongType = manager.zeros(new Shape(3, 2), DataType.INT32);
    assertThatThrownBy(() -> weights.copyTo("grid", wrongType))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("the array for it I32");
    NDArray signed = manager.zeros(new Shape(2), DataType.INT8);
    assertThatThrownBy(() -> weights.copyTo("eight", signed))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("tensor 'eight' is F8_E4M3 [2], and the array for it I8 [2]");
    assertThatThrownBy(() -> weights.copyTo("grdi", grid))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("no tensor 'grdi'");
    assertThatThrownBy(() -> weights.copyTo(Collections.singletonMap(null, grid)))
        .isInstanceOf(MisuseException.class)
        .hasMessage("a tensor's name must be given (was null)");
    NDArray turned = manager.zeros(new Shape(2, 3)).transpose();
    turned.setName("turned");
    assertThatThrownBy(() -> weights.copyTo("grid", turned))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("the array 'turned' is a view that does not lie densely in C order");
    assertThatThrownBy(() ->
            weights.copyTo(
                Map.of("grid", grid), LoadOptions.builder().optCast(DataType.FLOAT16).build()))
        .isInstanceOf(MisuseException.class)
        .hasMessageStartingWith("copyTo takes no optCast");
    assertThatThrownBy(() ->
            weights.copyTo(
                Map.of("grid", grid), LoadOptions.builder().optDevice(Device.cpu()).build()))
        .isInstanceOf(MisuseException.class)
        .hasMessageStartingWith("copyTo takes no optCast, optAsStored, optLazy or optDevice");
    assertThatThrownBy(() ->
            weights.copyTo(
                Map.of("grid", grid), LoadOptions.builder().optSkipMismatched(true).build()))
        .isInstanceOf(MisuseException.class)
        .hasMessageStartingWith("optPartial and optSkipMismatched are for loads into a block");
    assertThatThrownBy(() -> weights.load(manager, LoadOptions.builder().optPartial(true).build()))
        .isInstanceOf(MisuseException.class)
        .hasMessageStartingWith("optPartial and optSkipMismatched are for loads into a block");
    grid.close();
    assertThatThrownBy(() -> weights.copyTo("grid", grid)).isInstanceOf(RuntimeException.class);
    weights.close();
    assertThatThrownBy(() -> weights.copyTo("grid", wrongShape))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("closed");
    assertThat(wrongShape.toFloatArray()).containsOnly(0);
  }

  @Test
  void memoryOfAnyKindIsFilled() {
    byte[] bytes = new byte[24];
    try (Arena arena = Arena.ofShared()) {
      MemorySegment half = arena.allocate(5, 1).asSlice(1, 4);
      weights.copyToMemory(
          Map.of(
              "grid",
              new Memory.OnHost(MemorySegment.ofArray(bytes)),
              "half",
              new Memory.OnHost(half)),
          LoadOptions.defaults());
      assertThat(half.toArray(ValueLayout.JAVA_BYTE)).containsExactly(0x80, 0x3F, 0x00, 0xC0);
    }
    assertThat(MemorySegment.ofArray(bytes).get(ValueLayout.JAVA_FLOAT_UNALIGNED, 20)).isEqualTo(6);
  }

  @Test
  void aClosedArrayIsRefused() {
    NDArray odd = manager.zeros(new Shape(3), DataType.UINT8);
    odd.close();
    assertThatThrownBy(() -> weights.copyTo(Map.of("odd", odd), LoadOptions.defaults()))
        .isInstanceOf(MisuseException.class)
        .hasMessage("the array for 'odd': the array is closed");
  }

  @Test
  void aFailureSaysWhichTensorsAreComplete() {
    FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
    NDArray odd = manager.zeros(new Shape(3), DataType.UINT8);
    NDArray many = manager.zeros(new Shape(MANY));
    try (GantrySession session = Sessions.over(calls);
        Weights faulty = Weights.open(file, session)) {
      Map<String, NDArray> arrays = new LinkedHashMap<>();
      arrays.put("odd", odd);
      arrays.put("many", many);
      calls.from(
          FaultyFileCalls.Function.PREAD,
          calls.count(FaultyFileCalls.Function.PREAD) + 4,
          new FaultyFileCalls.Fails(Errno.EIO));
      TransferException.IncompleteRead failed =
          catchThrowableOfType(
              TransferException.IncompleteRead.class,
              () ->
                  faulty.copyTo(
                      arrays,
                      LoadOptions.builder().optThreads(1).optRequestBytes(1 << 19).build()));
      assertThat(failed.complete()).containsExactly("odd");
      assertThat(odd.toUint8Array()).containsExactly(1, 2, 3);
    }
  }

  @Test
  void bytesOfAFileGoToArraysAndBack() throws IOException {
    Path raw = folder.resolve("raw");
    NDArray numbers = manager.arange(1000f);
    RawFile bytes = RawFile.of(raw);
    bytes.write(100, numbers);
    assertThat(Files.size(raw)).isEqualTo(4100);
    NDArray back = manager.zeros(new Shape(10, 100));
    bytes.read(100 + 400, back.get("3:5"));
    assertThat(back.get("3").toFloatArray()).startsWith(100, 101);
    assertThat(back.get("4").toFloatArray()).endsWith(298, 299);
    assertThat(back.get("5").toFloatArray()).containsOnly(0);
    // The values of a view that is not dense are written in the view's order.
    bytes.write(0, manager.arange(4f).reshape(2, 2).transpose());
    try (NDList loaded = weights.load(manager)) {
      bytes.write(4096, loaded.get("half"));
    }
    float[] values = new float[4];
    bytes.read(List.of(new RawFile.Part(0, onHost(values))));
    assertThat(values).containsExactly(0, 2, 1, 3);
    assertThatThrownBy(() -> bytes.read(4092, onHost(values)))
        .hasMessage(
            "open failed: %s, whose 4100 bytes end before offset 4108: unexpected end of file,"
                + " 8 bytes missing",
            raw);
    assertThatThrownBy(() -> bytes.read(Collections.singletonList(null)))
        .isInstanceOf(MisuseException.class)
        .hasMessage("a part must be given (was null)");
  }

  private static Memory onHost(float[] values) {
    return new Memory.OnHost(MemorySegment.ofArray(values));
  }
}
