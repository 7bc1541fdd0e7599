// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.Extent;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.commit.NewFile;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class NewSafetensorsTest {
  private static final Path FOLDER = Path.of("folder");

  /// Returns a tensor whose bytes no test reads.
  private static NewTensor tensor(String name, DType dtype, long... shape) {
    long bits = dtype.bits() * Arrays.stream(shape).reduce(1, Math::multiplyExact);
    return new NewTensor(
        name,
        dtype,
        TensorShape.of(shape),
        new Source.FilePart(new Extent(Path.of("elsewhere"), 5, bits / Byte.SIZE)));
  }

  private static NewSafetensors file(Map<String, String> metadata, NewTensor... tensors) {
    return NewSafetensors.file(FOLDER.resolve("x.safetensors"), List.of(tensors), metadata);
  }

  private static NewSafetensors folder(long fileBytes, NewTensor... tensors) {
    return NewSafetensors.folder(
        FOLDER, List.of(tensors), Map.of(), new DataFileOptions("m", fileBytes, false));
  }

  private static byte[] bytes(Source source) {
    return source instanceof Memory.OnHost(MemorySegment segment)
        ? segment.toArray(ValueLayout.JAVA_BYTE)
        : new byte[0];
  }

  private static String text(NewFile file) {
    return new String(bytes(file.parts().getFirst()), StandardCharsets.UTF_8);
  }

  private static void assertRefused(ThrowingCallable call, String... named) {
    assertThatThrownBy(call)
        .isInstanceOf(MisuseException.class)
        .message()
        .contains(named)
        .hasLineCount(1);
  }

  @Test
  void headerOfASmallFile() {
    NewDataFile dataFile =
        file(
                Map.of("format", "pt", "epoch", "3"),
                tensor("b", DType.BF16, 2, 3),
                tensor("é\n\"😀", DType.F6_E2M3, 4),
                tensor("a", DType.BF16),
                tensor("none", DType.F32, 0, 7))
            .dataFiles()
            .getFirst();
    String json =
        """
        {"__metadata__":{"epoch":"3","format":"pt"},\
        "none":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]},\
        "a":{"dtype":"BF16","shape":[],"data_offsets":[0,2]},\
        "b":{"dtype":"BF16","shape":[2,3],"data_offsets":[2,14]},\
        "é\\n\\"😀":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[14,17]}}\
        """;
    byte[] expected = new byte[4096];
    Arrays.fill(expected, (byte) ' ');
    byte[] length = {(byte) 0xf8, 0x0f, 0, 0, 0, 0, 0, 0};
    System.arraycopy(length, 0, expected, 0, length.length);
    byte[] utf8 = json.getBytes(StandardCharsets.UTF_8);
    System.arraycopy(utf8, 0, expected, length.length, utf8.length);
    assertThat(bytes(dataFile.file().parts().getFirst())).isEqualTo(expected);
    assertThat(dataFile.file().size()).isEqualTo(4096 + 17);
  }

  @Test
  void widestDtypesComeFirstThenNames() {
    List<NewTensor> tensors =
        Arrays.stream(DType.values()).map(dtype -> tensor(dtype.name(), dtype, 4)).toList();
    List<DType> order =
        NewSafetensors.file(Path.of("x"), tensors, Map.of())
            .dataFiles()
            .getFirst()
            .tensors()
            .stream()
            .map(NewTensor::dtype)
            .toList();
    assertThat(order)
        .startsWith(DType.C64, DType.F64, DType.I64, DType.U64, DType.F32)
        .endsWith(DType.I8, DType.U8, DType.F6_E2M3, DType.F6_E3M2, DType.F4)
        .hasSize(DType.values().length);
  }

  @Test
  void indexOfSeveralShards() {
    NewSafetensors made =
        folder(10, tensor("b\"", DType.U8, 6), tensor("ü", DType.U8, 4), tensor("a", DType.U8, 1));
    assertThat(made.dataFiles().stream().map(NewDataFile::name))
        .containsExactly("m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors");
    assertThat(made.index().map(NewSafetensorsTest::text))
        .hasValue(
            """
            {
              "metadata": {
                "total_size": 11
              },
              "weight_map": {
                "a": "m-00002-of-00002.safetensors",
                "b\\"": "m-00001-of-00002.safetensors",
                "ü": "m-00001-of-00002.safetensors"
              }
            }
            """);
    assertThat(made.files().stream().map(NewFile::file))
        .containsExactly(
            FOLDER.resolve("m.safetensors.index.json"),
            FOLDER.resolve("m-00001-of-00002.safetensors"),
            FOLDER.resolve("m-00002-of-00002.safetensors"));
  }

  @Test
  void oneShardHasAPlainNameAndAnIndexIfWanted() {
    assertThat(folder(10, tensor("a", DType.U8, 10)).files().stream().map(NewFile::file))
        .containsExactly(FOLDER.resolve("m.safetensors"));
    DataFileOptions indexed = new DataFileOptions("model", 5_000_000_000L, true);
    NewSafetensors made = NewSafetensors.folder(FOLDER, List.of(), Map.of(), indexed);
    assertThat(made.files().stream().map(NewFile::file))
        .containsExactly(
            FOLDER.resolve("model.safetensors.index.json"), FOLDER.resolve("model.safetensors"));
    assertThat(made.index().map(NewSafetensorsTest::text).orElseThrow())
        .contains("\"total_size\": 0", "\"weight_map\": {}");
  }

  @Test
  void aTensorThatIsTooLargeHasAShardToItself() {
    NewSafetensors made =
        folder(
            10,
            tensor("small", DType.U8, 1),
            tensor("large", DType.U8, 11),
            tensor("empty", DType.U8, 0),
            tensor("next", DType.U8, 10));
    assertThat(made.dataFiles().stream().map(dataFile -> dataFile.tensors().size()))
        .containsExactly(1, 1, 2);
    assertThat(made.dataFiles().get(1).tensors().getFirst().name()).isEqualTo("large");
  }

  @Test
  void twentyThousandTensorsGetOneHeader() {
    NewTensor[] tensors =
        IntStream.range(0, 20_000)
            .mapToObj(i -> tensor("model.layers." + i + ".weight", DType.BF16, i))
            .toArray(NewTensor[]::new);
    NewDataFile dataFile = file(Map.of(), tensors).dataFiles().getFirst();
    assertThat(dataFile.tensors()).hasSize(20_000);
    assertThat(dataFile.file().parts()).hasSize(20_001);
    assertThat(bytes(dataFile.file().parts().getFirst()).length % 4096).isZero();
  }

  @Test
  void namesThatCannotBeReadAgainAreRefused() {
    NewTensor tensor = tensor("twice", DType.U8, 1);
    assertRefused(() -> file(Map.of(), tensor, tensor), "two tensors", "'twice'");
    // The two tensors may be in different data files.
    assertRefused(() -> folder(1, tensor, tensor("other", DType.U8, 1), tensor), "'twice'");
    assertRefused(() -> file(Map.of(), tensor("__metadata__", DType.U8, 1)), "__metadata__");
    for (String half : List.of("a\ud83d", "\ude00b", "\ude00\ud83d")) {
      assertRefused(() -> file(Map.of(), tensor(half, DType.U8, 1)), "surrogate", "\\u");
      assertRefused(() -> file(Map.of(half, ""), tensor), "key", "surrogate");
      assertRefused(() -> file(Map.of("note", half), tensor), "'note'", "surrogate");
    }
  }

  @Test
  void whatAReaderWouldRefuseIsRefused() {
    long[] shape = new long[65];
    Arrays.fill(shape, 1);
    assertRefused(() -> file(Map.of(), tensor("deep", DType.U8, shape)), "'deep'", "64");
    String longest = "x".repeat(16 << 20);
    assertRefused(() -> file(Map.of(longest + "x", "")), "16777216 characters");
    // Six such notes exceed 100,000,000 bytes.
    assertRefused(
        () ->
            file(
                Map.of(
                    "1", longest, "2", longest, "3", longest, "4", longest, "5", longest, "6",
                    longest)),
        "header",
        "99999736 bytes");
    NewTensor[] many =
        Stream.generate(() -> tensor("same", DType.U8)).limit(1_000_001).toArray(NewTensor[]::new);
    assertRefused(() -> file(Map.of(), many), "1000001 tensors");
    NewTensor huge = tensor("huge", DType.U8, Long.MAX_VALUE / 8);
    NewTensor[] overflowing =
        IntStream.range(0, 9)
            .mapToObj(i -> new NewTensor("huge" + i, DType.U8, huge.shape(), huge.source()))
            .toArray(NewTensor[]::new);
    assertRefused(() -> file(Map.of(), overflowing), "bytes together");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "a/b", "a\\b", "/", "a\u0000", "\ud83d"})
  void stemsThatNameNoFileAreRefused(String stem) {
    assertRefused(() -> new DataFileOptions(stem, 1, false), "optName");
  }

  @Test
  void shardsWithoutRoomAreRefused() {
    assertRefused(() -> DataFileOptions.defaults().withFileBytes(0), "0");
  }
}
