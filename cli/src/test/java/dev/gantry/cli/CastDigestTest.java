// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.gantry.core.Memory;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.safetensors.NewSafetensors;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.IntToDoubleFunction;
import java.util.function.ObjIntConsumer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// `digest --as`: digests of rounded values.
@ExtendWith(NoLeaks.class)
class CastDigestTest {
  private static final int COUNT = 70_001;

  @TempDir private Path temporary;
  private Path file;

  /// Returns values with ties, subnormals, infinities and values that overflow an F16. There is
  /// no NaN, because no cast promises a NaN's bits.
  private static float value(int i) {
    int bits = i * 0x9e3779b1;
    float any = Float.intBitsToFloat((i & 1) == 0 ? bits & 0xffff8000 : bits);
    return Float.isNaN(any) ? i : any;
  }

  /// Returns a value just above that of [#value], which may lie in the middle between two BF16.
  /// Rounding first to F32 and then to BF16 gives another result than rounding once.
  private static double wide(int i) {
    return value(i) * (1 + 0x1p-40);
  }

  private static byte[] shorts(IntToDoubleFunction values, boolean brain) {
    return bytes(
        2,
        (bytes, i) -> {
          float value = (float) values.applyAsDouble(i);
          bytes.putShort(brain ? bfloat16(value) : Float.floatToFloat16(value));
        });
  }

  private static byte[] floats(IntToDoubleFunction values) {
    return bytes(4, (bytes, i) -> bytes.putFloat((float) values.applyAsDouble(i)));
  }

  private static byte[] doubles(IntToDoubleFunction values) {
    return bytes(8, (bytes, i) -> bytes.putDouble(values.applyAsDouble(i)));
  }

  private static byte[] bytes(int width, ObjIntConsumer<ByteBuffer> put) {
    ByteBuffer bytes = ByteBuffer.allocate(COUNT * width).order(ByteOrder.LITTLE_ENDIAN);
    IntStream.range(0, COUNT).forEach(i -> put.accept(bytes, i));
    return bytes.array();
  }

  /// Rounds to the nearest BF16, ties to even.
  private static short bfloat16(float value) {
    int bits = Float.floatToRawIntBits(value);
    return (short) ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16);
  }

  private static float half(int i) {
    float value = Float.float16ToFloat((short) i);
    return Float.isNaN(value) ? 1 : value;
  }

  private static float brain(int i) {
    float value = Float.intBitsToFloat(i << 16);
    return Float.isNaN(value) ? 1 : value;
  }

  @BeforeEach
  void write() {
    List<NewTensor> tensors = new ArrayList<>();
    add(tensors, "single", DType.F32, COUNT, floats(CastDigestTest::value));
    add(tensors, "double", DType.F64, COUNT, doubles(CastDigestTest::wide));
    add(tensors, "half", DType.F16, COUNT, shorts(CastDigestTest::half, false));
    add(tensors, "brain", DType.BF16, COUNT, shorts(CastDigestTest::brain, true));
    add(tensors, "numbers", DType.I64, 100, TestFiles.bytes(1, 800));
    add(tensors, "words", DType.U16, 100, TestFiles.bytes(2, 200));
    add(tensors, "flags", DType.BOOL, 3, new byte[] {0, 1, 1});
    add(tensors, "nothing", DType.F32, 0, new byte[0]);
    file = temporary.resolve("plain.safetensors");
    try (GantrySession session = GantrySession.open()) {
      var _ =
          session.write(
              NewSafetensors.file(file, tensors, Map.of()).files(), WriteOptions.defaults());
    }
  }

  private static void add(
      List<NewTensor> tensors, String name, DType dtype, long count, byte[] bytes) {
    Memory memory = new Memory.OnHost(MemorySegment.ofArray(bytes));
    tensors.add(new NewTensor(name, dtype, TensorShape.of(count), memory));
  }

  private Map<?, ?> digests(String type) {
    return (Map<?, ?>)
        TestSamples.json(
                TestSamples.run("digest", "--as", type, "--json", "--device", "host", file))
            .get("tensors");
  }

  private static void require(Map<?, ?> digests, String name, String dtype, byte[] bytes) {
    Map<?, ?> digest = (Map<?, ?>) digests.get(name);
    assertThat(digest.get("dtype")).isEqualTo(dtype);
    assertThat(digest.get("sha256")).as(name).isEqualTo(TestSamples.sha256(bytes));
  }

  @Test
  void floatingPointTensorsAreRoundedOnceAndOthersStay() {
    for (String type : List.of("BF16", "F16")) {
      boolean brain = type.equals("BF16");
      Map<?, ?> digests = digests(type);
      require(digests, "single", type, shorts(CastDigestTest::value, brain));
      require(digests, "double", type, shorts(CastDigestTest::wide, brain));
      require(digests, "half", type, shorts(CastDigestTest::half, brain));
      require(digests, "brain", type, shorts(CastDigestTest::brain, brain));
      require(digests, "numbers", "I64", TestFiles.bytes(1, 800));
      require(digests, "words", "U16", TestFiles.bytes(2, 200));
      require(digests, "flags", "BOOL", new byte[] {0, 1, 1});
      require(digests, "nothing", type, new byte[0]);
    }
  }

  @Test
  void theWidestTypeHoldsAllOthers() {
    Map<?, ?> digests = digests("f32");
    require(digests, "single", "F32", floats(CastDigestTest::value));
    require(digests, "double", "F32", floats(CastDigestTest::wide));
    require(digests, "half", "F32", floats(CastDigestTest::half));
    require(digests, "brain", "F32", floats(CastDigestTest::brain));
    assertThat(TestSamples.run("digest", "--as", "F32", file).out()).contains("  flags\n");
  }

  /// The digest covers the values that a load with a cast gives. The values of a model in 8 bits
  /// are its codes multiplied by their scales, and the scales have no digest of their own.
  @Test
  void quantisedTensorsHaveTheirTrueValuesUnderTheirNames() {
    byte[] codes = TestFiles.bytes(3, 64 * 256);
    for (int i = 0; i < codes.length; i++) {
      // 0x7f and 0xff are NaN.
      codes[i] = (codes[i] & 0x7f) == 0x7f ? 0 : codes[i];
    }
    List<NewTensor> tensors = new ArrayList<>();
    Memory memory = new Memory.OnHost(MemorySegment.ofArray(codes));
    tensors.add(new NewTensor("up.weight", DType.F8_E4M3, TensorShape.of(64, 256), memory));
    ByteBuffer scales = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
    scales.putFloat(0.3f).putFloat(1.7f);
    tensors.add(
        new NewTensor(
            "up.weight_scale_inv",
            DType.F32,
            TensorShape.of(1, 2),
            new Memory.OnHost(MemorySegment.ofArray(scales.array()))));
    file = temporary.resolve("quantised.safetensors");
    try (GantrySession session = GantrySession.open()) {
      var _ =
          session.write(
              NewSafetensors.file(file, tensors, Map.of()).files(), WriteOptions.defaults());
    }
    ByteBuffer expected = ByteBuffer.allocate(codes.length * 2).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < codes.length; i++) {
      expected.putShort(bfloat16(float8(codes[i]) * (i % 256 < 128 ? 0.3f : 1.7f)));
    }
    Map<?, ?> digests = digests("BF16");
    assertThat(digests.keySet()).extracting(Object::toString).containsExactly("up.weight");
    require(digests, "up.weight", "BF16", expected.array());
  }

  private static float float8(byte code) {
    int exponent = (code >> 3) & 15;
    int fraction = code & 7;
    float size =
        exponent == 0
            ? Math.scalb((float) fraction, -9)
            : Math.scalb((float) (8 + fraction), exponent - 10);
    return code < 0 ? -size : size;
  }

  @Test
  void samplesAndUnknownTypesAreRefused() {
    assertThat(TestSamples.fail(64, "digest", "--as", "F8", file).err()).contains("F32, BF16, F16");
    Path records =
        TestSamples.writeRecords(
            temporary.resolve("a.tfrecord"), Compression.NONE, List.of(new byte[] {1}));
    assertThat(TestSamples.fail(64, "digest", "--as", "F32", records).err()).contains("weights");
  }
}
