// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Cancellation;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.spi.Formula;
import dev.gantry.testing.NoLeaks;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
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

/// The results of conversions must be the same on each device.
@ExtendWith(NoLeaks.class)
abstract class ConversionContract {
  private static final byte UNTOUCHED = 0x5A;
  private static final int MARGIN = 128;
  private static final List<DType> TARGETS = List.of(DType.BF16, DType.F16, DType.F32);

  final GantrySession session = GantrySession.open();

  @AfterEach
  void close() {
    session.close();
  }

  abstract Device device();

  /// Returns memory of the device with these bytes.
  abstract Bytes bytes(byte[] content);

  interface Bytes extends AutoCloseable {
    long address();

    byte[] content();

    @Override
    void close();
  }

  /// The results of PyTorch for all codes of a dtype.
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
    Formula value =
        Formula.real(0, expected.from(), Formula.Axis.COLUMN)
            .times(Formula.real(1, DType.F32, Formula.Axis.ROW));
    Dequantisation what =
        new Dequantisation(
            value,
            expected.to(),
            new Dequantisation.Box(
                new Dequantisation.Indexes(0, 0, 0), new Dequantisation.Indexes(1, 1, 256)),
            List.of(
                new Dequantisation.Input(256, List.of(1L), 0),
                new Dequantisation.Input(4, List.of(4L), 0)),
            List.of());
    byte[] made = convert(what, List.of(codes, scale), List.of(0, 0), 0);
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

  /// The seed determines layouts, boxes, dtypes and addresses.
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5, 6, 7, 8})
  void eachElementIsWhatItsFormulaSays(int seed) {
    Random random = new Random(seed);
    for (int round = 0; round < 40; round++) {
      RandomLayout layout = RandomLayout.of(random);
      Dequantisation what = layout.dequantisation(TARGETS.get(round % 3));
      List<Integer> shifts = layout.inputs().stream().map(_ -> random.nextInt(8)).toList();
      int shift = random.nextInt(16) * what.to().alignmentBytes();
      byte[] made = convert(what, layout.parts(), shifts, shift);
      assertThat(Arrays.mismatch(made, layout.naive(what)))
          .as("seed %d, round %d: %s", seed, round, layout)
          .isEqualTo(-1);
    }
  }

  /// The tensors are longer than the part that a thread converts at once, and need a launch of
  /// many blocks.
  @Test
  void largeTensors() {
    Random random = new Random(9);
    for (int[] size :
        new int[][] {{1, 700, 2051}, {3, 150, 3000}, {1, 1, 1_200_001}, {1, 400_000, 3}}) {
      RandomLayout layout = RandomLayout.ofBlockScales(random, size[0], size[1], size[2]);
      Dequantisation what = layout.dequantisation(DType.BF16);
      byte[] made = convert(what, layout.parts(), List.of(3, 1), 0);
      assertThat(Arrays.mismatch(made, layout.naive(what))).as("%s", layout).isEqualTo(-1);
    }
  }

  @Test
  void nothingIsConvertedToNothing() {
    RandomLayout layout = RandomLayout.ofBlockScales(new Random(1), 3, 0, 7);
    assertThat(convert(layout.dequantisation(DType.F16), layout.parts(), List.of(0, 0), 0))
        .isEmpty();
  }

  @Test
  void severalAtOnce() {
    byte[] codes = {0, 1, 2, 3, (byte) 0x81};
    try (Bytes source = bytes(codes);
        Bytes one = bytes(new byte[10]);
        Bytes other = bytes(new byte[20])) {
      session.prepareConversion(plain(DType.F32, 5), device());
      session.convert(
          List.of(
              new Dequantisation.Task(
                  plain(DType.BF16, 5), List.of(source.address()), one.address()),
              new Dequantisation.Task(
                  plain(DType.F32, 5), List.of(source.address()), other.address())),
          device(),
          new Cancellation());
      for (int i = 0; i < codes.length; i++) {
        assertThat(value(DType.BF16, bits(DType.BF16, one.content(), i))).isEqualTo(codes[i]);
        assertThat(value(DType.F32, bits(DType.F32, other.content(), i))).isEqualTo(codes[i]);
      }
    }
  }

  /// Returns the dequantisation of eight-bit integers without scales.
  static Dequantisation plain(DType to, int elements) {
    return new Dequantisation(
        Formula.real(0, DType.I8, Formula.Axis.COLUMN),
        to,
        new Dequantisation.Box(
            new Dequantisation.Indexes(0, 0, 0), new Dequantisation.Indexes(1, 1, elements)),
        List.of(new Dequantisation.Input(elements, List.of(1L), 0)),
        List.of());
  }

  /// Converts, with each source and the target at a given number of bytes behind an aligned
  /// address.
  private byte[] convert(
      Dequantisation what, List<byte[]> sources, List<Integer> shifts, int targetAt) {
    int start = MARGIN + targetAt;
    int end = start + (int) what.targetBytes();
    byte[] before = new byte[end + MARGIN];
    Arrays.fill(before, UNTOUCHED);
    List<Bytes> inputs = new ArrayList<>();
    List<Long> addresses = new ArrayList<>();
    try (Bytes to = bytes(before)) {
      for (int i = 0; i < sources.size(); i++) {
        Bytes input = bytes(shifted(sources.get(i), shifts.get(i)));
        inputs.add(input);
        addresses.add(input.address() + shifts.get(i));
      }
      session.convert(
          List.of(new Dequantisation.Task(what, addresses, to.address() + start)),
          device(),
          new Cancellation());
      byte[] after = to.content();
      assertThat(Arrays.copyOf(after, start)).containsOnly(UNTOUCHED);
      assertThat(Arrays.copyOfRange(after, end, after.length)).containsOnly(UNTOUCHED);
      return Arrays.copyOfRange(after, start, end);
    } finally {
      inputs.forEach(Bytes::close);
    }
  }

  private static byte[] shifted(byte[] content, int by) {
    byte[] shifted = new byte[content.length + by];
    System.arraycopy(content, 0, shifted, by, content.length);
    return shifted;
  }
}
