// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Cancellation;
import dev.gantry.core.DType;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.order.EpochOrder;
import dev.gantry.formats.spi.FieldSource;
import dev.gantry.formats.spi.SampleCatalogue;
import dev.gantry.formats.spi.SampleRun;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The allowed contents of a `shards.json`, and the refused ones with the kind of each refusal.
@ExtendWith(NoLeaks.class)
class ShardSetTest {
  private static final int BLOCK = 4096;
  private static final int ONE_BYTES = 4096 + 3 * 8;
  private static final int TWO_BYTES = 4096 + 2 * 8;

  /// The JSON with apostrophes as quotes, and `ONE` and `TWO` for the checksums: see [#json].
  private static final String GOOD =
      """
      {'format': 'gantry-shards', 'version': 1, 'samples': 5, 'block_bytes': 4096,
       'fields': [{'name': 'a', 'dtype': 'U8', 'shape': [3]},
                  {'name': 'b', 'dtype': 'I64', 'shape': []}],
       'metadata': {'k': 'v'},
       'shards': [
         {'file': 'one.bin', 'samples': 3, 'bytes': 4120, 'offsets': [0, 4096], 'crc32c': 'ONE'},
         {'file': 'two.bin', 'samples': 2, 'bytes': 4112, 'offsets': [0, 4096], 'crc32c': 'TWO'}]}
      """;

  @TempDir Path folder;

  private static byte[] bytes(int value, int length) {
    byte[] bytes = new byte[length];
    Arrays.fill(bytes, (byte) value);
    return bytes;
  }

  private static String sums(byte[] bytes) {
    StringBuilder digits = new StringBuilder();
    for (int from = 0; from < bytes.length; from += BLOCK) {
      byte[] block = Arrays.copyOfRange(bytes, from, Math.min(bytes.length, from + BLOCK));
      digits.append(HexFormat.of().toHexDigits(Crc32c.of(MemorySegment.ofArray(block))));
    }
    return digits.toString();
  }

  private static String json(String template) {
    return template
        .replace('\'', '"')
        .replace("ONE", sums(bytes(1, ONE_BYTES)))
        .replace("TWO", sums(bytes(2, TWO_BYTES)));
  }

  @BeforeEach
  void writeShards() throws IOException {
    Files.write(folder.resolve("one.bin"), bytes(1, ONE_BYTES));
    Files.write(folder.resolve("two.bin"), bytes(2, TWO_BYTES));
  }

  private ShardSet open(String template) throws IOException {
    Files.writeString(folder.resolve("shards.json"), json(template));
    return ShardSet.open(folder);
  }

  @Test
  @Tag("jdk-files")
  void saysWhatTheFileSays() throws IOException {
    ShardSet set = open(GOOD.replace("{'format'", "{'later': [{}], 'format'"));
    assertThat(set.file()).isEqualTo(folder.resolve("shards.json"));
    assertThat(set.samples()).isEqualTo(5);
    assertThat(set.blockBytes()).isEqualTo(BLOCK);
    assertThat(set.fields())
        .containsExactly(
            new Field("a", DType.U8, TensorShape.of(3)),
            new Field("b", DType.I64, TensorShape.of()));
    assertThat(set.metadata()).containsExactly(Map.entry("k", "v"));
    assertThat(set.totalBytes()).isEqualTo(ONE_BYTES + TWO_BYTES);
    Shard two = set.shards().get(1);
    assertThat(two.file()).isEqualTo(folder.resolve("two.bin"));
    assertThat(two.samples()).isEqualTo(2);
    assertThat(two.bytes()).isEqualTo(TWO_BYTES);
    assertThat(List.of(two.offset(0), two.offset(1))).containsExactly(0L, 4096L);
    assertThat(two.blocks()).isEqualTo(2);
    assertThat(two.crc32c(1)).isEqualTo(Crc32c.of(MemorySegment.ofArray(bytes(2, 16))));
    assertThat(ShardSet.open(folder.resolve("shards.json")).samples()).isEqualTo(5);
  }

  @Test
  void theOrderOfMembersIsFree() throws IOException {
    String template =
        GOOD.replace("'fields'", "'skipped'")
            .replaceFirst(
                "(?s)}\\s*$",
                """
                , 'fields': [{'shape': [3], 'dtype': 'U8', 'name': 'a'},
                             {'shape': [], 'dtype': 'I64', 'name': 'b'}]}
                """);
    assertThat(open(template).fields().getFirst().name()).isEqualTo("a");
  }

  @Test
  void metadataMayBeMissingAndThereMayBeNoSamples() throws IOException {
    ShardSet set =
        open(
            """
            {'format': 'gantry-shards', 'version': 1, 'samples': 0, 'block_bytes': 8192,
             'fields': [{'name': 'é', 'dtype': 'BF16', 'shape': [0, 2]}], 'shards': []}
            """);
    assertThat(set.metadata()).isEmpty();
    assertThat(set.shards()).isEmpty();
    try (GantrySession session = GantrySession.open()) {
      set.verify(session);
    }
  }

  /// Another writer may leave more space between fields than the format requires.
  @Test
  void fieldsMayBeFartherApart() throws IOException {
    byte[] one = bytes(1, ONE_BYTES + 4096);
    Files.write(folder.resolve("one.bin"), one);
    String template =
        GOOD.replace("4120, 'offsets': [0, 4096]", "8216, 'offsets': [0, 8192]")
            .replace("ONE", sums(one));
    assertThat(open(template).shards().getFirst().offset(1)).isEqualTo(8192);
  }

  /// The last column is the text at the offset of the fault.
  @ParameterizedTest(name = "{2}: {0} -> {1}")
  @CsvSource(
      quoteCharacter = '`',
      delimiter = ';',
      value = {
        "`'gantry-shards'`; `'other'`; unknown-format; `'other'`",
        "`'gantry-shards'`; 1; invalid-format; `1, 'version'`",
        "`'format': 'gantry-shards',`; ``; missing-format; `{`",
        "`'version': 1`; `'version': 2`; unknown-version; `2, 'samples'`",
        "`'version': 1`; `'version': '1'`; invalid-version; `'1'`",
        "`'version': 1,`; ``; missing-version; `{`",
        "`'samples': 5,`; ``; missing-samples; `{`",
        "`'block_bytes': 4096,`; ``; missing-block-bytes; `{`",
        "`'version': 1`; `'version': 1, 'version': 1`; duplicate-field; `'version': 1, 'samples'`",
        "`'samples': 5`; `'samples': 6`; samples-mismatch; `6,`",
        "`'samples': 5`; `'samples': -5`; negative-samples; `-5,`",
        "`'samples': 5`; `'samples': 5.0`; fractional-samples; `5.0`",
        "`'samples': 5`; `'samples': 9223372036854775808`; samples-too-large; `92233`",
        "`'block_bytes': 4096`; `'block_bytes': 0`; invalid-block-bytes; `0,\n`",
        "`'block_bytes': 4096`; `'block_bytes': 4097`; invalid-block-bytes; `4097`",
        "`'block_bytes': 4096`; `'block_bytes': 1073745920`; invalid-block-bytes; `10737`",
        "`'block_bytes': 4096`; `'block_bytes': 8192`; checksum-count-mismatch; `{'file': 'one`",
        "`'block_bytes': 4096`; `'block_bytes': []`; invalid-block-bytes; `[],`",
        "`'metadata': {'k': 'v'}`; `'metadata': null`; invalid-metadata; `null`",
        "`'k': 'v'`; `'k': 1`; metadata-not-a-string; `1},`",
        "`'k': 'v'`; `'k': 'v', 'k': 'w'`; duplicate-note; `'k': 'w'`",
        "`'fields'`; `'felder'`; missing-fields; `{`",
        "`'fields': [`; `'fields': {}, 'x': [`; invalid-fields; `{}`",
        "`'fields': [`; `'fields': [], 'x': [`; no-fields; `[], 'x'`",
        "`'fields': [`; `'fields': [1, `; invalid-field; `1, {`",
        "`'name': 'a', `; ``; missing-name; `{'dtype'`",
        "`'name': 'a'`; `'name': ''`; empty-name; `''`",
        "`'name': 'a'`; `'name': null`; invalid-name; `null`",
        "`'name': 'a'`; `'name': 'b'`; duplicate-name; `{'name': 'b', 'dtype': 'I64'`",
        "`'name': 'a'`; `'name': 'a', 'name': 'a'`; duplicate-field; `'name': 'a', 'dtype'`",
        "`'dtype': 'U8', `; ``; missing-dtype; `{'name': 'a'`",
        "`'U8'`; `'u8'`; unknown-dtype; `'u8'`",
        "`'U8'`; `8`; invalid-dtype; `8,`",
        "`'U8'`; `'F4'`; sub-byte-dtype; `{'name': 'a'`",
        "`, 'shape': [3]`; ``; missing-shape; `{'name': 'a'`",
        "`[3]`; `3`; invalid-shape; `3}`",
        "`[3]`; `[-3]`; negative-dimension; `-3`",
        "`[3]`; `['3']`; invalid-dimension; `'3'`",
        "`[3]`; `[9223372036854775807, 2]`; shape-overflow; `{'name': 'a'`",
        "`'shape': []`; `'shape': [1152921504606846976]`; shape-overflow; `{'name': 'b'`",
        "`'shards': [`; `'s': [`; missing-shards; `{`",
        "`'shards': [`; `'shards': 1, 's': [`; invalid-shards; `1, 's'`",
        "`'shards': [`; `'shards': [1, `; invalid-shard; `1, \n`",
        "`'file': 'one.bin', `; ``; missing-file; `{'samples': 3`",
        "`'one.bin'`; `1`; shard-name-not-a-string; `1, 'samples': 3`",
        "`'one.bin'`; `'../one.bin'`; shard-name-with-dot-dot; `'../one`",
        "`'one.bin'`; `'/one.bin'`; shard-name-with-separator; `'/one`",
        "`'one.bin'`; `'a\\\\one.bin'`; shard-name-with-separator; `'a\\\\one`",
        "`'one.bin'`; `''`; unsafe-shard-name; `'', 's`",
        "`'one.bin'`; `'.'`; unsafe-shard-name; `'.', `",
        "`'one.bin'`; `'a\\u0000'`; unsafe-shard-name; `'a\\u`",
        "`'two.bin'`; `'one.bin'`; duplicate-shard; `'one.bin', 'samples': 2`",
        "`'one.bin'`; `'three.bin'`; missing-shard; `{'file': 'three`",
        "`'samples': 3, `; ``; missing-samples; `{'file': 'one`",
        "`'samples': 3`; `'samples': 0`; samples-mismatch; `5, `",
        "`'samples': 3`; `'samples': 9223372036854775807`; total-overflow; `{'file': 'one`",
        "`'samples': 3`; `'samples': 4611686018427387903`; total-overflow; `{'file': 'two`",
        "`'bytes': 4120, `; ``; missing-bytes; `{'file': 'one`",
        "`'bytes': 4120`; `'bytes': 4119`; field-past-end; `{'file': 'one`",
        "`'bytes': 4120`; `'bytes': 4095`; field-past-end; `{'file': 'one`",
        "`'bytes': 4120`; `'bytes': 4121`; bytes-after-end; `{'file': 'one`",
        "`'bytes': 4120`; `'bytes': 9223372036854775807`; total-overflow; `{'file': 'two`",
        "`'offsets': [0, 4096], 'crc32c': 'ONE`; `'crc32c': 'ONE`; missing-offsets; `{'file':"
            + " 'one`",
        "`[0, 4096]`; `0`; invalid-offsets; `0, 'crc`",
        "`[0, 4096]`; `[0]`; offset-count-mismatch; `{'file': 'one`",
        "`[0, 4096]`; `[0, 4096, 8192]`; offset-count-mismatch; `{'file': 'one`",
        "`[0, 4096]`; `[0, 4095]`; offset-not-on-page; `{'file': 'one`",
        "`[0, 4096]`; `[0, 0]`; fields-overlap; `{'file': 'one`",
        "`[0, 4096]`; `[4096, 0]`; fields-overlap; `{'file': 'one`",
        "`[0, 4096]`; `[0, 8192]`; field-past-end; `{'file': 'one`",
        "`[0, 4096]`; `[0, 9223372036854771712]`; field-past-end; `{'file': 'one`",
        "`[0, 4096]`; `[0, -4096]`; negative-offset; `-4096`",
        "`'crc32c': 'ONE'`; `'crc': 'ONE'`; missing-crc32c; `{'file': 'one`",
        "`'ONE'`; `7`; invalid-crc32c; `7}`",
        "`'ONE'`; `'0123456'`; crc32c-length; `'0123456'`",
        "`'ONE'`; `'0123456789abcdeF'`; invalid-crc32c; `'012345`",
        "`'ONE'`; `'0123456789abcdeg'`; invalid-crc32c; `'012345`",
        "`'ONE'`; `''`; checksum-count-mismatch; `{'file': 'one`",
        "`'ONE'`; `'0123456789abcdef01234567'`; checksum-count-mismatch; `{'file': 'one`",
      })
  void theFirstFaultIsNamed(String from, String to, String kind, String at) throws IOException {
    assertThat(GOOD).contains(from);
    MalformedFileException fault = fault(GOOD.replaceFirst(Pattern.quote(from), replacement(to)));
    String json = Files.readString(folder.resolve("shards.json"));
    assertThat(fault.kind()).as(fault.getMessage()).isEqualTo(kind);
    assertThat(fault.file()).isEqualTo(Location.of(folder.resolve("shards.json")));
    assertThat(json).contains(json(at));
    assertThat(fault.offset()).as(fault.getMessage()).isEqualTo(json.indexOf(json(at)));
  }

  private static String replacement(String text) {
    return Matcher.quoteReplacement(text);
  }

  private MalformedFileException fault(String template) {
    MalformedFileException fault =
        catchThrowableOfType(MalformedFileException.class, () -> open(template));
    assertThat(fault).as(template).isNotNull();
    return fault;
  }

  @Test
  @Tag("jdk-files")
  void anEmptyShardIsNone() {
    String template =
        GOOD.replace("'samples': 5", "'samples': 2").replace("'samples': 3", "'samples': 0");
    assertThat(fault(template)).returns("empty-shard", MalformedFileException::kind);
  }

  @Test
  void samplesWhoseBytesCannotBeCounted() {
    String template =
        GOOD.replace("'samples': 5", "'samples': " + EpochOrder.MAX_SAMPLES)
            .replace("'samples': 3", "'samples': " + (EpochOrder.MAX_SAMPLES - 2));
    assertThat(fault(template)).returns("samples-overflow", MalformedFileException::kind);
  }

  @Test
  @Tag("jdk-files")
  void whatIsNoIndex() {
    assertThat(fault("[]")).returns("not-an-object", MalformedFileException::kind);
    assertThat(fault(GOOD + "1")).returns("trailing-characters", MalformedFileException::kind);
    assertThat(fault(GOOD.substring(0, 100)))
        .returns("unexpected-end", MalformedFileException::kind);
  }

  @Test
  @Tag("jdk-files")
  void anIndexOfTooManyBytes() throws IOException {
    try (RandomAccessFile file =
        new RandomAccessFile(folder.resolve("shards.json").toFile(), "rw")) {
      file.setLength(ShardSet.MAX_INDEX_BYTES + 1);
    }
    assertThatThrownBy(() -> ShardSet.open(folder)).hasMessageContaining("index-too-large");
  }

  @Test
  void moreThanThereMayBe() {
    String field = "{'name': 'N', 'dtype': 'U8', 'shape': [0]}";
    StringBuilder fields = new StringBuilder();
    for (int i = 0; i <= ShardSet.MAX_FIELDS; i++) {
      fields.append(field.replace("N", "f" + i)).append(',');
    }
    assertThat(fault(GOOD.replace("'fields': [", "'fields': [" + fields)))
        .returns("too-many-fields", MalformedFileException::kind);
    assertThat(fault(GOOD.replace("[0, 4096]", "[" + "0,".repeat(ShardSet.MAX_FIELDS) + "0]")))
        .returns("too-many-offsets", MalformedFileException::kind);
    String axes = "1,".repeat(ShardSet.MAX_RANK) + "1";
    assertThat(fault(GOOD.replace("[3]", "[" + axes + "]")))
        .returns("too-many-dimensions", MalformedFileException::kind);
    StringBuilder shards = new StringBuilder();
    for (int i = 0; i <= ShardSet.MAX_SHARDS; i++) {
      shards
          .append("{'file':'")
          .append(i)
          .append("','samples':0,'bytes':0,'offsets':[],'crc32c':''},");
    }
    assertThat(fault(GOOD.replace("'shards': [", "'shards': [" + shards)))
        .returns("too-many-shards", MalformedFileException::kind);
    String zeros = "0,".repeat(ShardSet.MAX_FIELDS - 1) + "0";
    String many = shards.substring(0, shards.indexOf("{'file':'2001'"));
    assertThat(
            fault(
                GOOD.replace("'shards': [", "'shards': [" + many.replace("[]", "[" + zeros + "]"))))
        .returns("too-many-entries", MalformedFileException::kind);
    StringBuilder members = new StringBuilder();
    for (int i = 0; i <= ShardSet.MAX_ENTRIES; i++) {
      members.append("'-").append(Integer.toString(i, Character.MAX_RADIX)).append("':0,");
    }
    for (String object : List.of("{'format", "{'name': 'b", "{'file': 'two")) {
      assertThat(fault(GOOD.replace(object, "{" + members + object.substring(1))))
          .returns("too-many-entries", MalformedFileException::kind);
    }
  }

  @Test
  @Tag("jdk-files")
  void aFolderWithoutIndexIsNoDataset() {
    assertThatThrownBy(() -> ShardSet.open(folder))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("no-shards: the folder has no shards.json");
    assertThatThrownBy(() -> ShardSet.open(folder.resolve("none")))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("ENOENT");
  }

  @Test
  @Tag("jdk-files")
  void aShardInPlaceOfItsFolderIsNamedAsOne() throws IOException {
    Path shard = Files.write(folder.resolve("shard-00000.bin"), new byte[4096]);
    assertThatThrownBy(() -> ShardSet.open(shard))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageEndingWith(
            "another-format: not shards.json: a shard is read by its folder's name");
  }

  @ParameterizedTest
  @Tag("jdk-files")
  @ValueSource(ints = {0, 1, 4096, TWO_BYTES - 1})
  void aTruncatedShardIsNamedWithItsEnd(int length) throws IOException {
    Files.write(folder.resolve("two.bin"), bytes(2, length));
    assertThat(fault(GOOD))
        .returns("truncated-shard", MalformedFileException::kind)
        .returns(Location.of(folder.resolve("two.bin")), MalformedFileException::file)
        .returns((long) length, MalformedFileException::offset);
  }

  @Test
  @Tag("jdk-files")
  void aShardThatIsTooLongOrNoFile() throws IOException {
    Path two = folder.resolve("two.bin");
    Files.write(two, bytes(2, TWO_BYTES + 1));
    assertThat(fault(GOOD))
        .returns("wrong-size", MalformedFileException::kind)
        .returns(Location.of(two), MalformedFileException::file)
        .returns((long) TWO_BYTES, MalformedFileException::offset);
    Files.delete(two);
    Files.createDirectory(two);
    assertThat(fault(GOOD))
        .returns("not-a-regular-file", MalformedFileException::kind)
        .returns(Location.of(two), MalformedFileException::file);
  }

  @Test
  @Tag("jdk-files")
  void everyDamagedByteIsFoundInItsBlock() throws IOException {
    ShardSet set = open(GOOD);
    try (GantrySession session = GantrySession.open()) {
      set.verify(session);
      for (int at : new int[] {0, 1, 4095, 4096, 4100, TWO_BYTES - 1}) {
        byte[] damaged = bytes(2, TWO_BYTES);
        damaged[at] ^= 0x10;
        Files.write(folder.resolve("two.bin"), damaged);
        assertThat(catchThrowableOfType(MalformedFileException.class, () -> set.verify(session)))
            .returns("checksum-mismatch", MalformedFileException::kind)
            .returns(Location.of(folder.resolve("two.bin")), MalformedFileException::file)
            .returns((long) at / BLOCK * BLOCK, MalformedFileException::offset);
      }
    }
  }

  @Test
  @Tag("jdk-files")
  void verificationTellsOfProgressAndEndsEarly() throws IOException {
    ShardSet set = open(GOOD);
    try (GantrySession session = GantrySession.open()) {
      List<Long> told = new ArrayList<>();
      set.verify(session, 2, (done, total) -> told.add(total - done), new Cancellation());
      assertThat(told).endsWith(0L);
      Cancellation cancelled = new Cancellation();
      cancelled.cancel();
      assertThat(
              catchThrowableOfType(
                  TransferException.class, () -> set.verify(session, 2, (_, _) -> {}, cancelled)))
          .returns(new Failure.Cancelled(), TransferException::failure);
      Files.write(folder.resolve("one.bin"), new byte[10]);
      assertThatThrownBy(() -> set.verify(session))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("one.bin");
    }
  }

  @Test
  void aRunOfSamplesIsOnePiece() throws IOException {
    try (SampleCatalogue store = open(GOOD).catalogue(List.of("b", "a"))) {
      assertThat(store.fields()).extracting(Field::name).containsExactly("b", "a");
      assertThat(store.fileSamples()).containsExactly(3L, 2L);
      assertThat(store.source(0)).isEqualTo(new FieldSource.InFiles(8, true));
      assertThat(store.source(1)).isEqualTo(new FieldSource.InFiles(3, true));
      assertThat(pieces(store, 0, new SampleRun(0, 1, 2))).containsExactly("one.bin 4104 2");
      assertThat(pieces(store, 1, new SampleRun(1, 1, 1))).containsExactly("two.bin 3 1");
      assertThatThrownBy(() -> pieces(store, 1, new SampleRun(1, 1, 2)))
          .isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(
              () -> store.write(0, new SampleRun(0, 0, 1), MemorySegment.ofArray(new byte[8]), 0))
          .isInstanceOf(IllegalStateException.class);
    }
  }

  private static List<String> pieces(SampleCatalogue store, int field, SampleRun run) {
    List<String> pieces = new ArrayList<>();
    store.pieces(
        field,
        run,
        (file, offset, samples) -> pieces.add(file.fileName() + " " + offset + " " + samples));
    return pieces;
  }

  @Test
  @Tag("jdk-files")
  void theIdentityChangesWithTheSamplesOnly() throws IOException {
    String identity = open(GOOD).catalogue().identity();
    assertThat(identity).doesNotContainAnyWhitespaces();
    assertThat(open(GOOD.replace("'k': 'v'", "'k': 'w'")).catalogue().identity())
        .isEqualTo(identity);
    assertThat(open(GOOD).catalogue(List.of("a")).identity()).isEqualTo(identity);
    assertThat(open(GOOD.replace("'a'", "'c'")).catalogue().identity()).isNotEqualTo(identity);
    assertThat(open(GOOD.replace("U8", "I8")).catalogue().identity()).isNotEqualTo(identity);
    assertThat(open(GOOD.replace("ONE", "0".repeat(16))).catalogue().identity())
        .isNotEqualTo(identity);
  }

  @Test
  void onlyFieldsThatAreThereAreChosen() throws IOException {
    ShardSet set = open(GOOD);
    assertThatThrownBy(() -> set.catalogue(List.of("c")))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("no field 'c'; its fields are [a, b]");
    assertThatThrownBy(() -> set.catalogue(List.of("a", "a")))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("field 'a' is chosen twice");
  }
}
