// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.plan.PlanLimits;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.ShortBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.DoubleStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Casts of a load, compared with Java's own arithmetic.
@ExtendWith(NoLeaks.class)
class WeightsCastTest {
  private static final long SEED = 20261121;

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

  @Test
  void everyBf16IsItsFloat() throws IOException {
    short[] bits = everyShortButNan(value -> WeightsFile.fromBfloat16(value));
    float[] expected = new float[bits.length];
    for (int i = 0; i < bits.length; i++) {
      expected[i] = WeightsFile.fromBfloat16(bits[i]);
    }
    NDArray array = loadCast(DType.BF16, shorts(bits), DataType.FLOAT32);
    assertThat(array.getDataType()).isEqualTo(DataType.FLOAT32);
    assertThat(array.toFloatArray()).containsExactly(expected);
  }

  @Test
  void everyF16IsItsFloat() throws IOException {
    short[] bits = everyShortButNan(Float::float16ToFloat);
    float[] expected = new float[bits.length];
    for (int i = 0; i < bits.length; i++) {
      expected[i] = Float.float16ToFloat(bits[i]);
    }
    assertThat(loadCast(DType.F16, shorts(bits), DataType.FLOAT32).toFloatArray())
        .containsExactly(expected);
  }

  @Test
  void floatsAreRoundedToTheNearestF16() throws IOException {
    float[] values = floats();
    NDArray array = loadCast(DType.F32, bytes(values), DataType.FLOAT16);
    assertThat(array.getDataType()).isEqualTo(DataType.FLOAT16);
    ShortBuffer bits = array.toByteBuffer().order(ByteOrder.nativeOrder()).asShortBuffer();
    for (int i = 0; i < values.length; i++) {
      assertThat(bits.get(i)).as("%s", values[i]).isEqualTo(Float.floatToFloat16(values[i]));
    }
  }

  @Test
  void floatsAreRoundedToTheNearestBf16() throws IOException {
    float[] values = floats();
    NDArray array = loadCast(DType.F32, bytes(values), DataType.BFLOAT16);
    assertThat(array.getDataType()).isEqualTo(DataType.BFLOAT16);
    ShortBuffer bits = array.toByteBuffer().order(ByteOrder.nativeOrder()).asShortBuffer();
    for (int i = 0; i < values.length; i++) {
      assertThat(bits.get(i)).as("%s", values[i]).isEqualTo(WeightsFile.bfloat16(values[i]));
    }
    assertThat(array.mul(0).sum().getDataType()).isEqualTo(DataType.BFLOAT16);
  }

  @Test
  void notANumberStaysNone() throws IOException {
    byte[] bytes = WeightsFile.bytes(DType.F32, Double.NaN, 1);
    for (DataType type :
        List.of(DataType.FLOAT16, DataType.BFLOAT16, DataType.FLOAT64, DataType.FLOAT32)) {
      assertThat(loadCast(DType.F32, bytes, type).toType(DataType.FLOAT32, true).toFloatArray())
          .containsExactly(Float.NaN, 1);
    }
  }

  @Test
  void onlyFloatingPointTensorsAreCast() throws IOException {
    Path file =
        new WeightsFile()
            .vector("f64", DType.F64, 0.5)
            .vector("bf16", DType.BF16, 0.5)
            .vector("i64", DType.I64, 5)
            .vector("u16", DType.U16, 6)
            .vector("bool", DType.BOOL, 1)
            .vector("c64", DType.C64, 7)
            .write(folder.resolve("mixed.safetensors"));
    NDList list = load(file, LoadOptions.builder().optCast(DataType.FLOAT32));
    assertThat(list)
        .extracting(NDArray::getName)
        .containsExactly("f64", "bf16", "i64", "u16", "bool", "c64");
    assertThat(list)
        .extracting(NDArray::getDataType)
        .containsExactly(
            DataType.FLOAT32,
            DataType.FLOAT32,
            DataType.INT64,
            DataType.UINT16,
            DataType.BOOLEAN,
            DataType.COMPLEX64);
    // The check comes before values are read, because DJL leaves a copy with the manager when it
    // reads a GPU's array.
    assertThat(manager.getManagedArrays()).hasSize(6);
    assertThat(list.get("f64").getFloat(0)).isEqualTo(0.5f);
    assertThat(list.get("i64").toLongArray()).containsExactly(5);
    assertThat(list.get("u16").toUnsignedShortArray()).containsExactly(6);
  }

  @ParameterizedTest
  @EnumSource(
      names = {"F4", "F6_.*", "F8_E8M0"},
      mode = EnumSource.Mode.MATCH_ANY)
  void whatDjlCannotCastIsRefusedBeforeAnythingIsRead(DType dtype) throws IOException {
    Path file =
        new WeightsFile()
            .vector("first", DType.F32, 1)
            .raw("small", dtype, TensorShape.of(8), new byte[dtype.bits()])
            .write(folder.resolve("small.safetensors"));
    Weights weights = Weights.open(file);
    // Without the file a read would fail with another error.
    Files.delete(file);
    LoadOptions options = LoadOptions.builder().optCast(DataType.FLOAT32).build();
    assertThatThrownBy(() -> weights.load(manager, options))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("'small'")
        .hasMessageContaining(dtype.name());
    assertThat(manager.getManagedArrays()).isEmpty();
  }

  @ParameterizedTest
  @EnumSource(
      names = {"FLOAT16", "BFLOAT16", "FLOAT32", "FLOAT64"},
      mode = EnumSource.Mode.EXCLUDE)
  void onlyFloatingPointTypesAreTargets(DataType type) {
    assertThatThrownBy(() -> LoadOptions.builder().optCast(type))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining(type.name());
  }

  /// The first tensor fills a part, which is as large as a slab may be; the second tensor is in
  /// another part.
  @Test
  void progressRisesOverThePartsAndEndsAtTheTotal() throws IOException {
    Path large = folder.resolve("1.safetensors");
    long part = PlanLimits.DEFAULT.slabBytes();
    Machine.assumeAvailable(2 * part);
    WeightsFile.writeSparse(large, "zeros", part);
    new WeightsFile()
        .raw("next", DType.BF16, TensorShape.of(50), new byte[100])
        .write(folder.resolve("2.safetensors"));
    List<Long> heard = new ArrayList<>();
    AtomicReference<TransferReport> report = new AtomicReference<>();
    NDList list =
        load(
            folder,
            LoadOptions.builder()
                .optCast(DataType.FLOAT32)
                .optReport(report::set)
                .optProgress((done, total) -> {
                  assertThat(total).isEqualTo(part + 100);
                  heard.add(done);
                }));
    assertThat(list)
        .extracting(NDArray::getDataType)
        .containsExactly(DataType.UINT8, DataType.FLOAT32);
    // The parts are read concurrently. The report counts the blocks at a part's edges, the
    // progress does not.
    assertThat(heard).isSorted().endsWith(part + 100);
    assertThat(report.get().bytes()).isBetween(part + 100, part + 100 + 4 * 4096);
    assertThat(report.get().files()).hasSize(2);
  }

  private float[] floats() {
    Random random = new Random(SEED);
    double[] edges = {0, -0.0, 1, 65504, 65519, 65520, 1e-8, 6e-8, -3.3e38, 3.4e38, 1 / 0.0};
    return toFloats(
        DoubleStream.concat(
            DoubleStream.of(edges),
            // Random bits give floats of all magnitudes.
            DoubleStream.generate(() -> Float.intBitsToFloat(random.nextInt()))
                .filter(value -> !Double.isNaN(value))
                .limit(20_000)));
  }

  private static float[] toFloats(DoubleStream values) {
    double[] doubles = values.toArray();
    float[] floats = new float[doubles.length];
    for (int i = 0; i < floats.length; i++) {
      floats[i] = (float) doubles[i];
    }
    return floats;
  }

  private interface Widening {
    float widen(short bits);
  }

  private static short[] everyShortButNan(Widening widening) {
    ShortBuffer shorts = ShortBuffer.allocate(1 << 16);
    for (int bits = 0; bits < 1 << 16; bits++) {
      if (!Float.isNaN(widening.widen((short) bits))) {
        shorts.put((short) bits);
      }
    }
    short[] result = new short[shorts.position()];
    shorts.flip().get(result);
    return result;
  }

  private static byte[] shorts(short[] values) {
    ByteBuffer bytes = ByteBuffer.allocate(values.length * 2).order(ByteOrder.LITTLE_ENDIAN);
    bytes.asShortBuffer().put(values);
    return bytes.array();
  }

  private static byte[] bytes(float[] values) {
    ByteBuffer bytes = ByteBuffer.allocate(values.length * 4).order(ByteOrder.LITTLE_ENDIAN);
    bytes.asFloatBuffer().put(values);
    return bytes.array();
  }

  private NDArray loadCast(DType dtype, byte[] bytes, DataType type) throws IOException {
    Path file =
        new WeightsFile()
            .raw("x", dtype, TensorShape.of(bytes.length / dtype.alignmentBytes()), bytes)
            .write(folder.resolve("x.safetensors"));
    NDArray array = load(file, LoadOptions.builder().optCast(type)).singletonOrThrow();
    assertThat(array.getName()).isEqualTo("x");
    return array;
  }

  private NDList load(Path file, LoadOptions.Builder options) {
    try (Weights weights = Weights.open(file)) {
      return weights.load(manager, options.build());
    }
  }
}
