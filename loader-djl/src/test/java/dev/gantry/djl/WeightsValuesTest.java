// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.util.JsonUtils;
import com.google.gson.JsonObject;
import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.internal.torch.PyTorch;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Loaded arrays have the values, the names, the types and the shapes of the file.
@ExtendWith(NoLeaks.class)
class WeightsValuesTest {
  private static final Path CORPUS =
      Path.of(System.getProperty("gantry.corpus", "../formats/src/test/resources/corpus"))
          .resolve("safetensors");

  @TempDir private Path folder;
  private NDManager manager;

  @BeforeEach
  void open() {
    manager = NDManager.newBaseManager();
  }

  @AfterEach
  void close() {
    manager.close();
  }

  static Stream<DType> held() {
    return Stream.of(DType.values()).filter(dtype -> PyTorch.dataType(dtype).isPresent());
  }

  @ParameterizedTest
  @MethodSource("held")
  void anArrayOfEveryTypeThatDjlHolds(DType dtype) throws IOException {
    NDArray array =
        only(new WeightsFile().tensor("x", dtype, TensorShape.of(2, 3), 1, 0, 1, 1, 0, 1));
    assertThat(array.getName()).isEqualTo("x");
    assertThat(array.getDataType()).isEqualTo(PyTorch.dataType(dtype).orElseThrow());
    assertThat(array.getShape()).isEqualTo(new Shape(2, 3));
    assertThat(array.getDevice()).isEqualTo(manager.getDevice());
    assertThat(array.getManager()).isSameAs(manager);
    assertThat(array.toType(DataType.FLOAT32, true).toFloatArray())
        .containsExactly(1, 0, 1, 1, 0, 1);
    assertThat(array.toType(DataType.FLOAT32, true).sum().getFloat()).isEqualTo(4);
  }

  @ParameterizedTest
  @EnumSource(
      names = {"F4", "F6_E2M3", "F6_E3M2", "F8_.*"},
      mode = EnumSource.Mode.MATCH_ANY)
  void rawBytesOfWhatDjlCannotHold(DType dtype) throws IOException {
    byte[] bytes = new byte[dtype.bits()];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) (i * 37 + 129);
    }
    Path file =
        new WeightsFile()
            .raw("x", dtype, TensorShape.of(2, 4), bytes)
            .write(folder.resolve("raw.safetensors"));
    try (Weights weights = Weights.open(file)) {
      NDArray array = weights.load(manager).singletonOrThrow();
      assertThat(array.getDataType()).isEqualTo(DataType.UINT8);
      assertThat(array.getShape()).isEqualTo(new Shape(bytes.length));
      assertThat(array.getName()).isEqualTo("x");
      assertThat(array.toByteArray()).isEqualTo(bytes);
      TensorInfo truth = weights.tensors().firstEntry().getValue();
      assertThat(truth.dtype()).isEqualTo(dtype);
      assertThat(truth.shape()).isEqualTo(TensorShape.of(2, 4));
    }
  }

  @Test
  void integersAtTheirLimits() throws IOException {
    WeightsFile file =
        new WeightsFile()
            .vector("u8", DType.U8, 0, 255)
            .vector("i8", DType.I8, -128, 127)
            .vector("u16", DType.U16, 0, 65535)
            .vector("i16", DType.I16, -32768, 32767)
            .vector("u32", DType.U32, 0, 4294967295.0)
            .vector("i32", DType.I32, Integer.MIN_VALUE, Integer.MAX_VALUE)
            .vector("i64", DType.I64, Long.MIN_VALUE, -1);
    NDList list = load(file);
    assertThat(list.get("u8").toUint8Array()).containsExactly(0, 255);
    assertThat(list.get("i8").toByteArray()).containsExactly(-128, 127);
    assertThat(list.get("u16").toUnsignedShortArray()).containsExactly(0, 65535);
    assertThat(list.get("i16").toShortArray()).containsExactly((short) -32768, (short) 32767);
    assertThat(list.get("u32").toUnsignedIntArray()).containsExactly(0L, 4294967295L);
    assertThat(list.get("i32").toIntArray()).containsExactly(Integer.MIN_VALUE, Integer.MAX_VALUE);
    assertThat(list.get("i64").toLongArray()).containsExactly(Long.MIN_VALUE, -1);
  }

  @Test
  void fractionsAndWhatIsNotFinite() throws IOException {
    double[] values = {-1.5, 0.15625, Double.POSITIVE_INFINITY, -0.0};
    NDList list =
        load(
            new WeightsFile()
                .vector("f64", DType.F64, values)
                .vector("f32", DType.F32, values)
                .vector("f16", DType.F16, values)
                .vector("bf16", DType.BF16, values));
    assertThat(list.get("f64").toDoubleArray()).containsExactly(values);
    float[] floats = {-1.5f, 0.15625f, Float.POSITIVE_INFINITY, -0.0f};
    for (String name : new String[] {"f32", "f16", "bf16"}) {
      assertThat(list.get(name).toType(DataType.FLOAT32, true).toFloatArray())
          .as(name)
          .containsExactly(floats);
    }
  }

  @Test
  void inTheOrderOfTheFile() throws IOException {
    NDList list =
        load(
            new WeightsFile()
                .vector("z", DType.U8, 1)
                .vector("a", DType.F64, 2)
                .vector("m", DType.BF16, 3));
    assertThat(list).extracting(NDArray::getName).containsExactly("z", "a", "m");
  }

  @Test
  void nothingOfAnEmptyCheckpoint() throws IOException {
    assertThat(load(new WeightsFile())).isEmpty();
  }

  @Test
  void emptyTensorsBesideFullOnes() throws IOException {
    NDList list =
        load(
            new WeightsFile()
                .tensor("none", DType.F32, TensorShape.of(0, 3))
                .tensor("scalar", DType.F32, TensorShape.of(), 7.5));
    assertThat(list.get("none").getShape()).isEqualTo(new Shape(0, 3));
    assertThat(list.get("none").toFloatArray()).isEmpty();
    assertThat(list.get("none").add(1).getShape()).isEqualTo(new Shape(0, 3));
    assertThat(list.get("scalar").getShape()).isEqualTo(new Shape());
    assertThat(list.get("scalar").getFloat()).isEqualTo(7.5f);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "every-dtype",
        "scalar-and-empty",
        "tensor-unaligned-to-its-dtype",
        "page-straddling",
        "odd-header-length-misaligned-data",
        "header-order-differs-from-offset-order",
        "thousand-tensors",
        "names-need-escaping"
      })
  void theCorpusAsTheReferenceReadsIt(String name) throws IOException {
    JsonObject expected;
    try (var reader = Files.newBufferedReader(CORPUS.resolve("expected.json"))) {
      expected =
          JsonUtils.GSON
              .fromJson(reader, JsonObject.class)
              .getAsJsonObject(name + ".safetensors")
              .getAsJsonObject("tensors");
    }
    for (boolean lazy : new boolean[] {false, true}) {
      LoadOptions options = Machine.loadOptions(lazy).build();
      try (Weights weights = Weights.open(CORPUS.resolve(name + ".safetensors"));
          NDList list = weights.load(manager, options)) {
        assertThat(list)
            .extracting(NDArray::getName)
            .containsExactlyElementsOf(weights.tensors().keySet());
        assertThat(weights.tensors().keySet()).isEqualTo(expected.keySet());
        for (NDArray array : list) {
          JsonObject truth = expected.getAsJsonObject(array.getName());
          assertThat(sha256(array))
              .as(array.getName())
              .isEqualTo(truth.get("sha256").getAsString());
          DType dtype = DType.named(truth.get("dtype").getAsString()).orElseThrow();
          if (PyTorch.dataType(dtype).isPresent()) {
            assertThat(array.getDataType()).isEqualTo(PyTorch.dataType(dtype).orElseThrow());
            assertThat(array.getShape().getShape())
                .isEqualTo(JsonUtils.GSON.fromJson(truth.get("shape"), long[].class));
          }
        }
      }
    }
  }

  private static String sha256(NDArray array) {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      ByteBuffer bytes = array.toByteBuffer().order(ByteOrder.nativeOrder());
      digest.update(bytes);
      return HexFormat.of().formatHex(digest.digest());
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  private NDArray only(WeightsFile file) throws IOException {
    return load(file).singletonOrThrow();
  }

  private NDList load(WeightsFile file) throws IOException {
    Path path = file.write(folder.resolve("made.safetensors"));
    try (Weights weights = Weights.open(path)) {
      return weights.load(manager);
    }
  }
}
