// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.sun.management.ThreadMXBean;
import dev.gantry.core.DType;
import dev.gantry.core.Failure;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Headers that the corpus lacks. Verdicts that follow the reference implementation were made with
/// safetensors 0.8.0.
class SafetensorsHeaderTest {
  /// A tensor `a` of one byte; `%s` stands for further members of its object.
  private static final String ONE_BYTE = "{'a':{'dtype':'U8','shape':[1],'data_offsets':[0,1]%s}}";

  @TempDir Path folder;

  private SafetensorsHeader read(String header, int bodyBytes) throws IOException {
    byte[] bytes = HandmadeSafetensors.file(header.replace('\'', '"'), new byte[bodyBytes]);
    return SafetensorsHeader.read(
        GantrySession.shared(), Files.write(folder.resolve("made.safetensors"), bytes));
  }

  private String kindOf(String header, int bodyBytes) {
    MalformedFileException refusal =
        catchThrowableOfType(MalformedFileException.class, () -> read(header, bodyBytes));
    assertThat(refusal).as(header).isNotNull();
    return refusal.kind();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "-0",
        "1e-400",
        "0e99999999999",
        "1E+2",
        "123456789012345678901234567890",
        "true",
        "{'x':1,'x':2}",
        "1,'n':2",
        "'\\/\\b\\f\u007f\\ud83d\\uDE00'",
      })
  void whatTheReferencePassesOverIsPassedOver(String value) throws IOException {
    assertThat(read(ONE_BYTE.formatted(",'n':" + value), 1).tensors()).containsOnlyKeys("a");
  }

  @ParameterizedTest(name = "{0}: {1}")
  @CsvSource(
      quoteCharacter = '`',
      value = {
        "1e400, number-out-of-range",
        "01, invalid-json",
        "1., invalid-json",
        "1e, invalid-json",
        "-, invalid-json",
        "+1, invalid-json",
        "tru, invalid-json",
        "Infinity, invalid-json",
        "'\\x', invalid-json",
        "'\\u00zz', invalid-json",
        "'\\ud800', lone-surrogate",
        "'\\udc00', lone-surrogate",
        "'\\ud83d\\ud83d\\ude00', lone-surrogate",
        "'\\ud83d\\n', lone-surrogate",
        "`[1,]`, invalid-json",
        "[1 2], invalid-json",
        "[1}, invalid-json",
        "'x, unexpected-end",
      })
  void whatIsNotJsonIsRefusedEvenWhereItIsNotUsed(String value, String kind) {
    assertThat(kindOf(ONE_BYTE.formatted(",'n':" + value), 1)).isEqualTo(kind);
  }

  @Test
  void numbersAreRefusedWhereTheirDigitsAloneAreTooMany() {
    assertThat(kindOf(ONE_BYTE.formatted(",'n':" + "9".repeat(400)), 1))
        .isEqualTo("number-out-of-range");
    assertThat(kindOf(ONE_BYTE.formatted(",'n':1." + "0".repeat(5000)), 1))
        .isEqualTo("number-too-long");
  }

  @Test
  void nestingEndsWhereTheReferenceEndsIt() throws IOException {
    String deepest = ",'n':" + "[".repeat(125) + "]".repeat(125);
    assertThat(read(ONE_BYTE.formatted(deepest), 1).tensors()).hasSize(1);
    String deeper = ",'n':" + "[".repeat(126) + "]".repeat(126);
    assertThat(kindOf(ONE_BYTE.formatted(deeper), 1)).isEqualTo("nesting-too-deep");
  }

  @ParameterizedTest(name = "{0}: {1}")
  @CsvSource(
      quoteCharacter = '`',
      value = {
        "`'dtype':'U8','shape':[-0],'data_offsets':[0,1]`, negative-dimension",
        "`'dtype':'U8','shape':[1e0],'data_offsets':[0,1]`, fractional-dimension",
        "`'dtype':'U8','shape':null,'data_offsets':[0,1]`, invalid-shape",
        "`'dtype':'U8','shape':[1],'data_offsets':{'0':0,'1':1}`, invalid-data-offsets",
        "`'dtype':'U8','shape':[1],'data_offsets':[0,1.0]`, fractional-offset",
        "`'dtype':'U8','shape':[1],'data_offsets':[0,'1']`, invalid-offset",
        "`'dtype':'U8','shape':[1],'data_offsets':[0,9223372036854775808]`, offset-too-large",
        "`'dtype':{'U8':null},'shape':[1],'data_offsets':[0,1]`, invalid-dtype",
        "`'dtype':'U8','shape':[1],'shape':[1],'data_offsets':[0,1]`, duplicate-field",
        "`'dtype':'U8','shape':[9223372036854775807],'data_offsets':[0,1]`, shape-overflow",
      })
  void aTensorThatIsNotRightInItselfIsRefused(String members, String kind) {
    assertThat(kindOf("{'a':{" + members + "}}", 1)).isEqualTo(kind);
  }

  @Test
  void ranksEndWhereTheirBoundIs() throws IOException {
    String ones = "1,".repeat(SafetensorsHeader.MAX_RANK - 1) + "1";
    String header = "{'a':{'dtype':'U8','shape':[%s],'data_offsets':[0,1]}}";
    assertThat(read(header.formatted(ones), 1).tensors().get("a"))
        .returns(SafetensorsHeader.MAX_RANK, tensor -> tensor.shape().rank());
    assertThat(kindOf(header.formatted(ones + ",1"), 1)).isEqualTo("too-many-dimensions");
  }

  @Test
  void oneStringIsNotTheWholeHeap() {
    String name = "n".repeat(16 * 1024 * 1024 + 1);
    assertThat(kindOf("{'" + name + "':null}", 0)).isEqualTo("string-too-long");
  }

  @Test
  void ofTwoNotesOfOneNameTheLastCounts() throws IOException {
    assertThat(read("{'__metadata__':{'k':'1','j':'2','k':'3'}}", 0).metadata())
        .containsOnly(Map.entry("k", "3"), Map.entry("j", "2"));
  }

  @Test
  void anEscapedFieldNameIsThatField() throws IOException {
    SafetensorsHeader header =
        read(
            "{'__meta\\u0064ata__':{'k':'v'},"
                + "'a':{'dt\\u0079pe':'U8','shape':[1],'data_offsets':[0,1]}}",
            1);
    assertThat(header.metadata()).containsOnlyKeys("k");
    assertThat(header.tensors()).containsOnlyKeys("a");
  }

  @ParameterizedTest
  @ValueSource(strings = {"c0af", "eda080", "f4908080", "e08080", "f08080", "ff", "80", "e282"})
  void whatIsNotUtf8IsRefused(String hexadecimal) throws IOException {
    byte[] name = HexFormat.of().parseHex(hexadecimal);
    String header = "{'" + new String(name, StandardCharsets.ISO_8859_1) + "':null}";
    byte[] bytes = HandmadeSafetensors.file(" ".repeat(header.length()));
    byte[] json = header.replace('\'', '"').getBytes(StandardCharsets.ISO_8859_1);
    System.arraycopy(json, 0, bytes, Long.BYTES, json.length);
    Path file = Files.write(folder.resolve("made.safetensors"), bytes);
    assertThatThrownBy(() -> SafetensorsHeader.read(GantrySession.shared(), file))
        .isInstanceOfSatisfying(
            MalformedFileException.class,
            e -> {
              assertThat(e.kind()).isEqualTo("invalid-utf8");
              assertThat(e.offset()).isEqualTo(10);
            });
  }

  @ParameterizedTest
  @ValueSource(strings = {"é", "☃", "😀", "\uFEFF", "\uFFFF", "\u0000", "\n", "\uD7FF\uE000"})
  void anyTextCanBeAName(String name) throws IOException {
    Path file =
        new HandmadeSafetensors()
            .metadata(name, name)
            .tensor(name, DType.U8, 1)
            .write(folder.resolve("made.safetensors"));
    SafetensorsHeader header = SafetensorsHeader.read(GantrySession.shared(), file);
    assertThat(header.tensors()).containsOnlyKeys(name);
    assertThat(header.metadata()).containsOnly(Map.entry(name, name));
  }

  @Test
  void aHeaderInUtf16IsRefused() throws IOException {
    byte[] json = "{}".getBytes(StandardCharsets.UTF_16LE);
    Path file =
        Files.write(
            folder.resolve("made.safetensors"),
            HandmadeSafetensors.file(new String(json, StandardCharsets.ISO_8859_1)));
    assertThatThrownBy(() -> SafetensorsHeader.read(GantrySession.shared(), file))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("invalid-json");
  }

  @Test
  void halfAMillionTensorsInNinetyMegabytesAreRead() throws IOException {
    int count = 500_000;
    long headerBytes = 90_000_000;
    Path file =
        HandmadeSafetensors.writeHuge(folder.resolve("huge.safetensors"), count, headerBytes);
    SafetensorsHeader header = SafetensorsHeader.read(GantrySession.shared(), file);
    assertThat(header.tensors()).hasSize(count);
    assertThat(header.dataStart()).isEqualTo(headerBytes + Long.BYTES).isEqualTo(Files.size(file));
    assertThat(header.tensors().lastEntry().getValue().shape())
        .isEqualTo(TensorShape.of(0, count - 1));
  }

  @Test
  void moreTensorsThanTheBoundAreRefused() throws IOException {
    StringBuilder header = new StringBuilder(64_000_000).append('{');
    for (int i = 0; i <= SafetensorsHeader.MAX_TENSORS; i++) {
      header.append(i == 0 ? "" : ",").append(HandmadeSafetensors.entry("" + i, "U8", 0, 0, 0));
    }
    assertThat(kindOf(header.append('}').toString(), 0)).isEqualTo("too-many-tensors");
  }

  /// The notes take about eight bytes each in the file, but a map of all of them would take a
  /// gigabyte.
  @Test
  void aHeaderFullOfNotesIsRefusedBeforeItFillsTheHeap() throws IOException {
    StringBuilder header = new StringBuilder(100_000_000).append("{'__metadata__':{");
    for (int i = 0; header.length() < 99_999_000; i++) {
      header.append(i == 0 ? "'" : ",'").append(Integer.toString(i, Character.MAX_RADIX));
      header.append("':''");
    }
    byte[] bytes =
        HandmadeSafetensors.file(header.append("}}").toString().replace('\'', '"'), new byte[0]);
    Path file = Files.write(folder.resolve("notes.safetensors"), bytes);
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long before = threads.getCurrentThreadAllocatedBytes();
    assertThatThrownBy(() -> SafetensorsHeader.read(GantrySession.shared(), file))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("too-many-notes: more than 100000 notes");
    assertThat(threads.getCurrentThreadAllocatedBytes() - before).isLessThan(64 << 20);
  }

  @Test
  void asManyNotesAsTheBoundAreReadAndWritten() throws IOException {
    Map<String, String> notes = new TreeMap<>();
    for (int i = 0; i < SafetensorsHeader.MAX_NOTES; i++) {
      notes.put("" + i, "");
    }
    Path file = folder.resolve("made.safetensors");
    try (GantrySession session = GantrySession.open()) {
      NewSafetensors.file(file, List.of(), notes).write(session, WriteOptions.defaults());
    }
    assertThat(SafetensorsHeader.read(GantrySession.shared(), file).metadata()).isEqualTo(notes);
    notes.put("one more", "");
    assertThatThrownBy(() -> NewSafetensors.file(file, List.of(), notes))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("100001 notes, more than 100000");
  }

  @Test
  void dimensionsThatNoTensorHasCountAsEntries() {
    StringBuilder header = new StringBuilder(80_000_000).append('{');
    String shape = "0" + ",0".repeat(SafetensorsHeader.MAX_RANK - 1);
    for (int i = 0; i * (SafetensorsHeader.MAX_RANK - 7L) <= 2_000_000; i++) {
      header.append(i == 0 ? "'" : ",'").append(i);
      header.append("':{'dtype':'U8','shape':[").append(shape).append("],'data_offsets':[0,0]}");
    }
    assertThat(kindOf(header.append('}').toString(), 0)).isEqualTo("too-many-entries");
  }

  @Test
  void aFileThatIsNotThereSaysSo() {
    assertFailure(folder.resolve("none.safetensors"), 2, "ENOENT");
  }

  @Test
  void aFolderIsNoFile() {
    assertFailure(folder, 21, "EISDIR");
  }

  @Test
  void aDeviceIsRefusedUnopened() {
    assertThatThrownBy(() -> SafetensorsHeader.read(GantrySession.shared(), Path.of("/dev/zero")))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("not-a-regular-file");
  }

  @Test
  void anInterruptedReadIsCancelled() throws IOException {
    Path file = new HandmadeSafetensors().tensor("a", DType.U8, 1).write(folder.resolve("a"));
    Thread.currentThread().interrupt();
    try {
      assertThatThrownBy(() -> SafetensorsHeader.read(GantrySession.shared(), file))
          .isInstanceOfSatisfying(
              TransferException.class,
              e -> assertThat(e.failure()).isEqualTo(new Failure.Cancelled()))
          .hasMessage("read failed: %s, on an interrupted thread: cancelled", file);
    } finally {
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  private static void assertFailure(Path file, int code, String name) {
    assertThatThrownBy(() -> SafetensorsHeader.read(GantrySession.shared(), file))
        .isInstanceOfSatisfying(
            TransferException.class,
            e -> {
              assertThat(e.operation()).isEqualTo("open");
              assertThat(e.failure())
                  .isInstanceOfSatisfying(
                      Failure.Errno.class,
                      errno -> {
                        assertThat(errno.code()).isEqualTo(code);
                        assertThat(errno.name()).isEqualTo(name);
                      });
              assertThat(e).hasMessageContaining(file.toString());
            });
  }

  static Stream<Arguments> otherFormats() {
    return Stream.of(
        Arguments.of("version https://git-lfs.github.com/spec/v1\noid sha256:46", "git lfs pull"),
        Arguments.of("PK\u0003\u0004\0\0\b\b archive/data.pkl", "NumPy and PyTorch"),
        Arguments.of("\u0080\u0002\u008a\nl\u00fc\u009cF\u00f9 j\u00a8P", "pickle"),
        Arguments.of("GGUF\u0003\0\0\0\0\0\0\0", "a GGUF file"),
        Arguments.of("<!DOCTYPE html><html><head>", "HTML"));
  }

  @ParameterizedTest
  @MethodSource("otherFormats")
  void saysWhatAFileOfAnotherFormatIs(String start, String words) throws IOException {
    Path file =
        Files.write(
            folder.resolve("model.safetensors"), start.getBytes(StandardCharsets.ISO_8859_1));
    assertThatThrownBy(() -> SafetensorsHeader.read(GantrySession.shared(), file))
        .isInstanceOfSatisfying(
            MalformedFileException.class,
            refusal -> assertThat(refusal.kind()).isEqualTo("another-format"))
        .hasMessageContaining("the file is ")
        .hasMessageContaining(words);
  }

  /// The header has 100 MB of zeros, of which the first is no JSON.
  @Test
  void aHeaderMayBeAsLongAsTheBound() throws IOException {
    long length = SafetensorsHeader.MAX_HEADER_BYTES;
    Path file = folder.resolve("sparse.safetensors");
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
      ByteBuffer word = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
      assertThat(channel.write(word.putLong(0, length))).isEqualTo(Long.BYTES);
      assertThat(channel.write(ByteBuffer.allocate(1), Long.BYTES + length - 1)).isEqualTo(1);
    }
    assertThatThrownBy(() -> SafetensorsHeader.read(GantrySession.shared(), file))
        .isInstanceOfSatisfying(
            MalformedFileException.class,
            fault -> assertThat(fault.kind()).isEqualTo("invalid-json"));
  }
}
