// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.abort;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import ai.djl.nn.ParameterList;
import dev.gantry.core.DType;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.formats.TensorTransform;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// A load turns quantised tensors into floating-point tensors with their scales.
@ExtendWith(NoLeaks.class)
class QuantisedLoadTest {
  private static final TensorShape SHAPE = TensorShape.of(75, 50);

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

  /// @param scales the shape of the scales; null for none
  /// @param block the rows and columns of a block in the configuration; 0 for none
  private record Case(String name, DType dtype, TensorShape scales, DType scaleType, int block) {
    /// Returns the index of an element's scale.
    int scale(int row, int column) {
      return switch (scales.rank()) {
        case 0 -> 0;
        default ->
            scales.dimension(1) == 1
                ? row
                : row / block * Math.toIntExact(scales.dimension(1)) + column / block;
      };
    }

    @Override
    public String toString() {
      return name;
    }
  }

  private static Stream<Case> cases() {
    return Stream.of(
        new Case("one scale", DType.F8_E4M3, TensorShape.of(), DType.F32, 0),
        new Case("one scale, I8", DType.I8, TensorShape.of(), DType.BF16, 0),
        new Case("a scale a row", DType.F8_E5M2, TensorShape.of(75, 1), DType.F32, 0),
        new Case("a scale a row, I8", DType.I8, TensorShape.of(75, 1), DType.F16, 0),
        new Case("blocks", DType.F8_E4M3, TensorShape.of(3, 2), DType.F32, 32),
        new Case("blocks of BF16", DType.F8_E4M3, TensorShape.of(3, 2), DType.BF16, 32),
        new Case("small blocks", DType.F8_E4M3, TensorShape.of(11, 8), DType.F32, 7));
  }

  @ParameterizedTest
  @MethodSource("cases")
  void asArraysOnRequest(Case each) throws IOException {
    float[] expected = write(each);
    try (Weights weights = Weights.open(folder)) {
      for (DataType type : new DataType[] {DataType.FLOAT32, DataType.BFLOAT16, DataType.FLOAT64}) {
        NDList arrays = weights.load(manager, LoadOptions.builder().optCast(type).build());
        assertThat(arrays).hasSize(1);
        // The arrays of codes and scales are closed. The check comes before values are read,
        // because DJL leaves a copy with the manager when it reads a GPU's array.
        assertThat(manager.getManagedArrays()).hasSize(1);
        assertThat(arrays.getFirst().getName()).isEqualTo("w");
        assertThat(arrays.getFirst().getDataType()).isEqualTo(type);
        assertThat(floats(arrays.getFirst())).isEqualTo(expected);
        arrays.close();
      }
    }
  }

  /// libcufile reads codes and scales onto a GPU, by the same code as `gds`.
  @ParameterizedTest
  @MethodSource("cases")
  @Tag("gpu")
  void byCuFileInItsCompatibilityMode(Case each) throws IOException {
    assumeTrue(manager.getDevice().isGpu(), "DJL computes on the CPU");
    float[] expected = write(each);
    AtomicReference<TransferReport> report = new AtomicReference<>();
    LoadOptions options =
        LoadOptions.builder()
            .optCast(DataType.FLOAT32)
            .optTransport(Transport.COMPAT)
            .optReport(report::set)
            .build();
    try (Weights weights = Weights.open(folder)) {
      NDList arrays = weights.load(manager, options);
      assertThat(floats(arrays.getFirst())).isEqualTo(expected);
      assertThat(report.get().bytesByTransport()).containsOnlyKeys(Transport.COMPAT);
      arrays.close();
    } catch (DeviceUnavailableException e) {
      // libcufile refuses files in containers without udev's records.
      abort("cuFile cannot have files here: " + e.getMessage());
    }
  }

  @ParameterizedTest
  @MethodSource("cases")
  void asAPartOfEachTensor(Case each) throws IOException {
    float[] expected = write(each);
    TensorSelection.Slices slices = TensorSelection.slices().along("w", 0).build();
    try (Weights weights = Weights.open(folder)) {
      for (int rank = 0; rank < 3; rank++) {
        LoadOptions options =
            LoadOptions.builder().optCast(DataType.FLOAT32).optSlices(slices, rank, 3).build();
        NDList arrays = weights.load(manager, options);
        int part = expected.length / 3;
        assertThat(floats(arrays.getFirst()))
            .isEqualTo(Arrays.copyOfRange(expected, rank * part, (rank + 1) * part));
        arrays.close();
      }
    }
  }

  @ParameterizedTest
  @MethodSource("cases")
  void intoParametersNewAndOld(Case each) throws IOException {
    float[] expected = write(each);
    // The 75 rows, whose 50 bytes become 150 bytes each, do not fit into one slab.
    LoadOptions options = LoadOptions.builder().slabBytes(4096).optCast(DataType.FLOAT32).build();
    try (Weights weights = Weights.open(folder)) {
      ParameterList parameters = parameter();
      for (int time = 0; time < 2; time++) {
        LoadReport report =
            weights.load(
                manager, parameters, ParameterNames.builder().rule("p", "w").build(), options);
        assertThat(report.cast().get("p")).isEqualTo(each.dtype() + " with scales to FLOAT32");
        NDArray array = parameters.get("p").getArray();
        assertThat(floats(array)).isEqualTo(expected);
        array.muli(0);
      }
    }
  }

  @Test
  void transposedAfterTheScales() throws IOException {
    float[] expected =
        write(new Case("blocks", DType.F8_E4M3, TensorShape.of(3, 2), DType.F32, 32));
    ParameterList parameters = parameter();
    ParameterNames names =
        ParameterNames.builder().rule("p", "w", TensorTransform.transpose()).build();
    LoadOptions options = LoadOptions.builder().slabBytes(4096).optCast(DataType.FLOAT32).build();
    try (Weights weights = Weights.open(folder)) {
      weights.load(manager, parameters, names, options);
    }
    try (NDArray back = parameters.get("p").getArray().transpose()) {
      assertThat(floats(back)).isEqualTo(expected);
    }
  }

  /// Values that are computed in the narrower of both types would lack what the wider one holds.
  @ParameterizedTest
  @ValueSource(strings = {"narrow", "wide"})
  void eachOfTwoArraysHasThePrecisionOfItsType(String first) throws IOException {
    String second = first.equals("wide") ? "narrow" : "wide";
    new WeightsFile()
        .raw("w", DType.F8_E4M3, TensorShape.of(1, 1), (byte) 0x38)
        .tensor("w_scale", DType.F32, TensorShape.of(), 1 + 0x1p-20)
        .write(folder.resolve("model.safetensors"));
    ParameterList parameters = new ParameterList();
    for (String name : List.of(first, second)) {
      Parameter parameter =
          Parameter.builder().setName(name).setType(Parameter.Type.WEIGHT).build();
      DataType type = name.equals("wide") ? DataType.FLOAT32 : DataType.FLOAT16;
      parameter.setArray(manager.zeros(new Shape(1, 1), type));
      parameters.add(name, parameter);
    }
    ParameterNames names = ParameterNames.builder().rule(first, "w").tie(second, first).build();
    try (Weights weights = Weights.open(folder)) {
      var _ = weights.load(manager, parameters, names, LoadOptions.defaults());
    }
    assertThat(floats(parameters.get("wide").getArray())).containsExactly(1 + 0x1p-20f);
    assertThat(floats(parameters.get("narrow").getArray())).containsExactly(1);
  }

  @Test
  void rawWithoutACast() throws IOException {
    write(new Case("blocks", DType.F8_E4M3, TensorShape.of(3, 2), DType.F32, 32));
    try (Weights weights = Weights.open(folder)) {
      NDList arrays = weights.load(manager);
      assertThat(arrays).extracting(NDArray::getName).containsExactlyInAnyOrder("w", "w_scale_inv");
      assertThat(arrays.get("w").getDataType()).isEqualTo(DataType.UINT8);
      assertThat(weights.tensors().get("w").dtype()).isEqualTo(DType.F8_E4M3);
    }
  }

  @Test
  void withoutScalesTheCodesAreTheValues() throws IOException {
    new WeightsFile()
        .raw("w", DType.F8_E4M3, TensorShape.of(3), (byte) 0x38, (byte) 0xB8, (byte) 0x7E)
        .raw("x", DType.F8_E4M3, TensorShape.of(2), (byte) 0xB8, (byte) 0x38)
        .write(folder.resolve("model.safetensors"));
    try (Weights weights = Weights.open(folder)) {
      NDList arrays =
          weights.load(manager, LoadOptions.builder().optCast(DataType.FLOAT32).build());
      assertThat(arrays.get("w").toFloatArray()).containsExactly(1, -1, 448);
      assertThat(arrays.get("x").toFloatArray()).containsExactly(-1, 1);
    }
  }

  /// Without its configuration a load would return the codes' values, which are wrong.
  @Test
  void aConfigurationThatIsThereMustBeReadable() throws IOException {
    write(new Case("blocks", DType.F8_E4M3, TensorShape.of(3, 2), DType.F32, 32));
    Path config = folder.resolve("config.json");
    Files.deleteIfExists(config);
    Files.createSymbolicLink(config, config.getFileName());
    LoadOptions options = LoadOptions.builder().optCast(DataType.FLOAT32).build();
    try (Weights weights = Weights.open(folder)) {
      assertThatThrownBy(() -> weights.load(manager, options))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("config.json");
    }
  }

  @Test
  void scalesThatDoNotFit() throws IOException {
    write(new Case("blocks", DType.F8_E4M3, TensorShape.of(3, 2), DType.F32, 32));
    Files.writeString(
        folder.resolve("config.json"), "{\"quantization_config\":{\"weight_block_size\":[64,64]}}");
    LoadOptions options = LoadOptions.builder().optCast(DataType.FLOAT32).build();
    try (Weights weights = Weights.open(folder)) {
      assertThatThrownBy(() -> weights.load(manager, options))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContainingAll("'w_scale_inv'", "[75, 50]", "[3, 2]");
    }
    Files.writeString(
        folder.resolve("config.json"), "{\"quantization_config\":{\"weight_block_size\":[0]}}");
    try (Weights weights = Weights.open(folder)) {
      assertThatThrownBy(() -> weights.load(manager, options))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContainingAll("config.json", "a block must have two positive sizes");
    }
    NoLeaks.assertNothingIsHeld();
  }

  /// Writes the tensor and its scales, and returns the values. All values are small integers times
  /// powers of two, which are exact in BF16.
  private float[] write(Case each) throws IOException {
    SplittableRandom random = new SplittableRandom(5);
    int rows = Math.toIntExact(SHAPE.dimension(0));
    int columns = Math.toIntExact(SHAPE.dimension(1));
    byte[] codes = new byte[rows * columns];
    double[] scales = new double[Math.toIntExact(each.scales().elements().orElseThrow())];
    for (int i = 0; i < scales.length; i++) {
      scales[i] = Math.scalb(1.0, random.nextInt(-3, 4));
    }
    float[] values = new float[codes.length];
    for (int i = 0; i < codes.length; i++) {
      int mantissa = random.nextInt(4);
      boolean negative = random.nextBoolean();
      // The value is 1 to 1.75 in steps of a quarter, or 1 to 4 for I8.
      double value =
          switch (each.dtype()) {
            case F8_E4M3 -> 1 + mantissa / 4.0;
            case F8_E5M2 -> 1 + mantissa / 4.0;
            default -> mantissa + 1;
          };
      int code =
          switch (each.dtype()) {
            case F8_E4M3 -> 0x38 | mantissa << 1 | (negative ? 0x80 : 0);
            case F8_E5M2 -> 0x3C | mantissa | (negative ? 0x80 : 0);
            default -> negative ? -(mantissa + 1) : mantissa + 1;
          };
      codes[i] = (byte) code;
      values[i] =
          (float) ((negative ? -value : value) * scales[each.scale(i / columns, i % columns)]);
    }
    String suffix = each.dtype() == DType.F8_E4M3 ? "_scale_inv" : "_scale";
    new WeightsFile()
        .raw("w", each.dtype(), SHAPE, codes)
        .tensor("w" + suffix, each.scaleType(), each.scales(), scales)
        .write(folder.resolve("model.safetensors"));
    if (each.block() > 0) {
      Files.writeString(
          folder.resolve("config.json"),
          "{\"model_type\":\"x\",\"quantization_config\":{\"quant_method\":\"fp8\","
              + "\"weight_block_size\":[%d,%d],\"fmt\":\"e4m3\"}}"
                  .formatted(each.block(), each.block()));
    }
    return values;
  }

  private static float[] floats(NDArray array) {
    try (NDArray floats = array.toType(DataType.FLOAT32, true)) {
      return floats.toFloatArray();
    }
  }

  private static ParameterList parameter() {
    ParameterList list = new ParameterList();
    list.add("p", Parameter.builder().setName("p").setType(Parameter.Type.WEIGHT).build());
    return list;
  }
}
