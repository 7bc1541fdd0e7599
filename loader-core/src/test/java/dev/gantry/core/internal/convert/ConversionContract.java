// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Cancellation;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.NoLeaks;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// What conversions make, on each device.
@ExtendWith(NoLeaks.class)
abstract class ConversionContract {
  private static final byte UNTOUCHED = 0x5A;
  private static final int MARGIN = 128;
  private static final List<DType> TARGETS = List.of(DType.BF16, DType.F16, DType.F32);
  private static final List<DType> SOURCES = Conversion.SOURCES.stream().sorted().toList();
  private static final List<DType> SCALES = Conversion.SCALES.stream().sorted().toList();

  final GantrySession session = GantrySession.open();

  @AfterEach
  void close() {
    session.close();
  }

  abstract Device device();

  /// Memory of the device with these bytes.
  abstract Bytes bytes(byte[] content);

  interface Bytes extends AutoCloseable {
    long address();

    byte[] content();

    @Override
    void close();
  }

  /// What PyTorch made of all codes of a dtype.
  record Expected(DType from, DType to, float scale, List<String> results) {
    @Override
    public String toString() {
      return from + " x " + scale + " to " + to;
    }
  }

  static Stream<Expected> allCodesBecomeWhatPyTorchMakesOfThem() {
    try (BufferedReader in =
        new BufferedReader(
            new InputStreamReader(
                Objects.requireNonNull(ConversionContract.class.getResourceAsStream("torch.txt")),
                StandardCharsets.US_ASCII))) {
      return in
          .lines()
          .filter(line -> !line.startsWith("#"))
          .map(line -> {
            String[] words = line.split(" ");
            return new Expected(
                DType.valueOf(words[0]),
                DType.valueOf(words[1]),
                Float.intBitsToFloat(Integer.parseUnsignedInt(words[2], 16)),
                List.of(words).subList(3, words.length));
          })
          .toList()
          .stream();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @ParameterizedTest
  @MethodSource
  void allCodesBecomeWhatPyTorchMakesOfThem(Expected expected) {
    byte[] codes = new byte[256];
    for (int code = 0; code < 256; code++) {
      codes[code] = (byte) code;
    }
    byte[] scale =
        ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putFloat(expected.scale()).array();
    Conversion what =
        new Conversion(expected.from(), expected.to(), ScaleGrid.single(256), DType.F32);
    byte[] made = convert(what, codes, 0, scale, 0, 0);
    List<String> results = new ArrayList<>();
    for (int code = 0; code < 256; code++) {
      int bits = bits(what.to(), made, code);
      boolean nan = Float.isNaN(value(what.to(), bits));
      if (nan) {
        assertThat(bits)
            .isEqualTo(
                what.to() == DType.BF16 ? 0x7FC0 : what.to() == DType.F16 ? 0x7E00 : 0x7FC00000);
      }
      results.add(nan ? "nan" : String.format(what.to() == DType.F32 ? "%08x" : "%04x", bits));
    }
    assertThat(results).isEqualTo(expected.results());
  }

  private static float value(DType dtype, int bits) {
    return switch (dtype) {
      case BF16 -> Float.intBitsToFloat(bits << 16);
      case F16 -> Float.float16ToFloat((short) bits);
      default -> Float.intBitsToFloat(bits);
    };
  }

  private static int bits(DType dtype, byte[] bytes, int index) {
    ByteBuffer all = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    return dtype == DType.F32 ? all.getInt(index * 4) : all.getShort(index * 2) & 0xFFFF;
  }

  /// Shapes, grids, dtypes and addresses of a seed.
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5, 6, 7, 8})
  void eachElementIsItsCodesValueTimesItsScale(int seed) {
    Random random = new Random(seed);
    for (int round = 0; round < 60; round++) {
      Conversion what =
          new Conversion(
              SOURCES.get(random.nextInt(SOURCES.size())),
              TARGETS.get(round % 3),
              grid(random),
              random.nextInt(6) == 0 ? null : SCALES.get(random.nextInt(SCALES.size())));
      byte[] source = new byte[(int) what.sourceBytes()];
      random.nextBytes(source);
      byte[] scales = scales(what, random);
      int shift = random.nextInt(16) * what.to().alignmentBytes();
      byte[] made = convert(what, source, random.nextInt(32), scales, random.nextInt(8), shift);
      byte[] naive = naive(what, source, scales);
      int difference = Arrays.mismatch(made, naive);
      assertThat(difference).as("seed %d, round %d: %s", seed, round, what).isEqualTo(-1);
    }
  }

  private static ScaleGrid grid(Random random) {
    long matrices = random.nextInt(4) == 0 ? 1 + random.nextInt(5) : 1;
    long rows = 1L + random.nextInt(random.nextBoolean() ? 4 : 200);
    long columns = 1L + random.nextInt(random.nextBoolean() ? 20 : 700);
    return switch (random.nextInt(6)) {
      case 0 -> ScaleGrid.single(matrices * rows * columns);
      case 1 -> new ScaleGrid(matrices, rows, columns, 1, columns);
      case 2 -> new ScaleGrid(matrices, rows, columns, rows, 1);
      case 3 -> new ScaleGrid(matrices, rows, columns, 128, 128);
      case 4 -> new ScaleGrid(matrices, rows, columns, 1, 32);
      default ->
          new ScaleGrid(
              matrices,
              rows,
              columns,
              1 + random.nextInt((int) rows),
              1 + random.nextInt((int) columns));
    };
  }

  /// Mostly near 1, and some of any bits.
  private static byte[] scales(Conversion what, Random random) {
    if (what.scaleType() == null) {
      return new byte[0];
    }
    ByteBuffer scales = ByteBuffer.allocate((int) what.scaleBytes()).order(ByteOrder.LITTLE_ENDIAN);
    while (scales.hasRemaining()) {
      int any = random.nextInt();
      float value =
          random.nextInt(20) == 0
              ? Float.intBitsToFloat(any)
              : Math.scalb(random.nextFloat() + 1, random.nextInt(20) - 10);
      switch (what.scaleType()) {
        case F32 -> scales.putFloat(value);
        case BF16 -> scales.putShort((short) (Float.floatToRawIntBits(value) >>> 16));
        case F16 -> scales.putShort(Float.floatToFloat16(value));
        default -> scales.put((byte) any);
      }
    }
    return scales.array();
  }

  /// As the definition says, without a thought for speed.
  private static byte[] naive(Conversion what, byte[] source, byte[] scales) {
    ByteBuffer made = ByteBuffer.allocate((int) what.targetBytes()).order(ByteOrder.LITTLE_ENDIAN);
    ScaleGrid grid = what.grid();
    float[] values = Codes.values(what.from());
    MemorySegment all = MemorySegment.ofArray(scales);
    for (int element = 0; element < source.length; element++) {
      long column = element % grid.columns();
      long row = element / grid.columns() % grid.rows();
      long matrix = element / grid.columns() / grid.rows();
      long scale =
          (matrix * grid.scaleRows() + row / grid.blockRows()) * grid.scaleColumns()
              + column / grid.blockColumns();
      float factor = what.scaleType() == null ? 1 : Codes.scale(all, what.scaleType(), scale);
      int bits = Codes.bits(what.to(), values[source[element] & 0xFF] * factor);
      if (what.to() == DType.F32) {
        made.putInt(bits);
      } else {
        made.putShort((short) bits);
      }
    }
    return made.array();
  }

  /// Longer than what a thread takes at once, and with a launch of many blocks.
  @Test
  void largeTensors() {
    Random random = new Random(9);
    ScaleGrid[] grids = {
      new ScaleGrid(1, 1500, 2051, 128, 128),
      new ScaleGrid(3, 300, 3000, 128, 128),
      ScaleGrid.single(3_000_001),
      new ScaleGrid(1, 2, 1_500_000, 1, 100),
      new ScaleGrid(1, 1_000_000, 3, 1, 3)
    };
    for (ScaleGrid grid : grids) {
      Conversion what = new Conversion(DType.F8_E4M3, DType.BF16, grid, DType.F32);
      byte[] source = new byte[(int) what.sourceBytes()];
      random.nextBytes(source);
      byte[] scales = scales(what, random);
      assertThat(
              Arrays.mismatch(convert(what, source, 3, scales, 1, 0), naive(what, source, scales)))
          .as("%s", grid)
          .isEqualTo(-1);
    }
  }

  @Test
  void nothingIsConvertedToNothing() {
    for (ScaleGrid grid : List.of(ScaleGrid.single(0), new ScaleGrid(3, 0, 7, 1, 7))) {
      Conversion what = new Conversion(DType.I8, DType.F16, grid, DType.F32);
      assertThat(convert(what, new byte[0], 0, new byte[0], 0, 0)).isEmpty();
    }
  }

  @Test
  void severalAtOnce() {
    byte[] codes = {0, 1, 2, 3, (byte) 0x81};
    try (Bytes source = bytes(codes);
        Bytes one = bytes(new byte[10]);
        Bytes other = bytes(new byte[20])) {
      session.prepareConversions(DType.F32, device());
      session.convert(
          List.of(
              new Conversion.Task(
                  Conversion.plain(DType.I8, DType.BF16, 5), source.address(), 0, one.address()),
              new Conversion.Task(
                  Conversion.plain(DType.I8, DType.F32, 5), source.address(), 0, other.address())),
          device(),
          new Cancellation());
      for (int i = 0; i < codes.length; i++) {
        assertThat(value(DType.BF16, bits(DType.BF16, one.content(), i))).isEqualTo(codes[i]);
        assertThat(value(DType.F32, bits(DType.F32, other.content(), i))).isEqualTo(codes[i]);
      }
    }
  }

  /// With each at this many bytes from where aligned memory begins.
  private byte[] convert(
      Conversion what, byte[] source, int at, byte[] scales, int scalesAt, int targetAt) {
    int start = MARGIN + targetAt;
    int end = start + (int) what.targetBytes();
    byte[] before = new byte[end + MARGIN];
    Arrays.fill(before, UNTOUCHED);
    try (Bytes from = bytes(shifted(source, at));
        Bytes by = bytes(shifted(scales, scalesAt));
        Bytes to = bytes(before)) {
      session.convert(
          List.of(
              new Conversion.Task(
                  what, from.address() + at, by.address() + scalesAt, to.address() + start)),
          device(),
          new Cancellation());
      byte[] after = to.content();
      assertThat(Arrays.copyOf(after, start)).containsOnly(UNTOUCHED);
      assertThat(Arrays.copyOfRange(after, end, after.length)).containsOnly(UNTOUCHED);
      return Arrays.copyOfRange(after, start, end);
    }
  }

  private static byte[] shifted(byte[] content, int by) {
    byte[] shifted = new byte[content.length + by];
    System.arraycopy(content, 0, shifted, by, content.length);
    return shifted;
  }
}
