// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.checkpoint.Manifest.FileEntry;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The contents that a manifest must not have, with the kind of each refusal.
@ExtendWith(NoLeaks.class)
class ManifestTest {
  private static final Manifest MADE =
      new Manifest(
          7,
          3,
          SaveHistory.NONE.then("0123456789abcdef", 1).then("fedcba9876543210", 3),
          false,
          new LinkedHashMap<>(Map.of("epoch", "3")),
          new LinkedHashMap<>(Map.of("loss", Double.NaN)),
          new LinkedHashMap<>(Map.of("é", "\uD83D\uDE00")),
          List.of(
              new FileEntry("model.safetensors", 10, -1, new LinkedHashMap<>(Map.of("w", 255))),
              new FileEntry("model.safetensors.index.json", 2, 0, new LinkedHashMap<>())));

  /// The members that a manifest must have, to which tests add others.
  private static final String REQUIRED =
      "'format':'gantry-checkpoint','version':1,'step':7,'sequence':3,'files':[]";

  @TempDir Path folder;

  private MalformedFileException refusal(byte[] bytes) {
    return catchThrowableOfType(MalformedFileException.class, () -> read(bytes));
  }

  private Manifest read(byte[] bytes) throws IOException {
    return Manifest.read(
        GantrySession.shared(), Location.of(Files.write(StoreFolder.manifest(folder), bytes)));
  }

  /// Returns the kind of the refusal of a manifest whose double quotes are written as single
  /// quotes.
  private String kind(String json) {
    MalformedFileException refusal =
        refusal(json.replace('\'', '"').getBytes(StandardCharsets.UTF_8));
    assertThat(refusal).as(json).isNotNull();
    assertThat(refusal.getMessage()).hasLineCount(1).contains(StoreFolder.MANIFEST);
    return refusal.kind();
  }

  @Test
  void whatIsWrittenIsRead() throws IOException {
    assertThat(read(ManifestWriter.bytes(MADE))).isEqualTo(MADE);
  }

  @Test
  void membersOfLaterVersionsAreSkipped() throws IOException {
    String json = "{'crc32c':'00000000'," + REQUIRED + ",'later':{'a':[1,null]},'files2':[]}";
    byte[] bytes = json.replace('\'', '"').getBytes(StandardCharsets.UTF_8);
    assertThat(read(ManifestWriter.sealed(bytes)).step()).isEqualTo(7);
  }

  @Test
  void unknownMembersAreCounted() {
    StringBuilder members = new StringBuilder();
    for (int i = 0; i <= Manifest.MAX_ENTRIES; i++) {
      members.append("'-").append(Integer.toString(i, Character.MAX_RADIX)).append("':0,");
    }
    assertThat(kind("{" + members + "'last':0}")).isEqualTo("too-many-entries");
    assertThat(kind("{'files':[{" + members + "'last':0}]}")).isEqualTo("too-many-entries");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "not-an-object | []",
        "not-an-object | 'text'",
        "missing-format | {'version':1,'step':7,'sequence':3,'files':[]}",
        "missing-version | {'format':'gantry-checkpoint','step':7,'sequence':3,'files':[]}",
        "missing-step | {'format':'gantry-checkpoint','version':1,'sequence':3,'files':[]}",
        "missing-sequence | {'format':'gantry-checkpoint','version':1,'step':7,'files':[]}",
        "missing-files | {'format':'gantry-checkpoint','version':1,'step':7,'sequence':3}",
        "unknown-format | {'format':'pickle'}",
        "invalid-format | {'format':1}",
        "unknown-version | {'version':2}",
        "unknown-version | {'version':0}",
        "invalid-version | {'version':'1'}",
        "negative-step | {'step':-1}",
        "fractional-step | {'step':1.5}",
        "step-too-large | {'step':9223372036854775808}",
        "invalid-step | {'step':null}",
        "negative-sequence | {'sequence':-3}",
        "not-an-object | {'history':[]}",
        "negative-save | {'history':{'a':-1}}",
        "invalid-finite | {'finite':'yes'}",
        "duplicate-name | {'history':{'a':1,'a':2}}",
        "not-an-object | {'state':[]}",
        "invalid-state | {'state':{'epoch':3}}",
        "invalid-state | {'state':{'epoch':null}}",
        "duplicate-name | {'state':{'epoch':'3','epoch':'4'}}",
        "not-an-object | {'metrics':1}",
        "invalid-metric | {'metrics':{'loss':'small'}}",
        "invalid-metric | {'metrics':{'loss':true}}",
        "number-out-of-range | {'metrics':{'loss':1e999}}",
        "duplicate-name | {'metrics':{'loss':1,'loss':1}}",
        "invalid-metadata | {'metadata':{'a':{}}}",
        "lone-surrogate | {'metadata':{'a':'\\ud800'}}",
        "invalid-files | {'files':{}}",
        "invalid-file | {'files':['model.safetensors']}",
        "duplicate-field | {'step':1,'step':1}",
        "duplicate-field | {'later':1,'later':1}",
      })
  void malformations(String kind, String json) {
    assertThat(kind(json)).isEqualTo(kind);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "incomplete-file | 'size':1,'crc32c':'00000000'",
        "incomplete-file | 'name':'a','crc32c':'00000000'",
        "incomplete-file | 'name':'a','size':1",
        "duplicate-field | 'name':'a','name':'b','size':1,'crc32c':'00000000'",
        "duplicate-field | 'name':'a','size':1,'size':1,'crc32c':'00000000'",
        "invalid-file-name | 'name':1",
        "negative-size | 'size':-1",
        "invalid-checksum | 'crc32c':1",
        "invalid-checksum | 'crc32c':'0000000'",
        "invalid-checksum | 'crc32c':'0000000G'",
        "invalid-checksum | 'crc32c':'FFFFFFFF'",
        "not-an-object | 'tensors':[]",
        "invalid-checksum | 'tensors':{'w':1}",
        "duplicate-name | 'tensors':{'w':'00000000','w':'00000000'}",
      })
  void malformationsOfAFile(String kind, String members) {
    assertThat(kind("{'files':[{" + members + "}]}")).isEqualTo(kind);
  }

  @Test
  void oneFileTwice() {
    String file = "{'name':'a','size':1,'crc32c':'00000000'}";
    assertThat(kind("{'files':[" + file + "," + file + "]}")).isEqualTo("duplicate-file");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"../x", "a/b", "/etc/passwd", "", ".", "..", "a/", "/", "./a", "a\\u0000b"})
  void unsafeFileNames(String name) {
    assertThat(kind("{'files':[{'name':'" + name + "','size':1,'crc32c':'00000000'}]}"))
        .isEqualTo("unsafe-file-name");
  }

  @Test
  void trailingBytes() {
    assertThat(kind("{" + REQUIRED + "} {}")).startsWith("trailing");
    assertThat(kind("{" + REQUIRED + "}\u0000")).startsWith("trailing");
  }

  @Test
  void bytesThatAreNotUtf8() {
    byte[] bytes = ManifestWriter.bytes(MADE);
    int inText = new String(bytes, StandardCharsets.ISO_8859_1).indexOf("epoch");
    bytes[inText] = (byte) 0xC0;
    assertThat(refusal(bytes).kind()).isEqualTo("invalid-utf8");
    assertThat(kind("\uFEFF{" + REQUIRED + "}")).isEqualTo("invalid-json");
  }

  @Test
  void truncatedAtEveryByte() {
    byte[] bytes = ManifestWriter.bytes(MADE);
    for (int length = 0; length < bytes.length; length++) {
      MalformedFileException refusal = refusal(Arrays.copyOf(bytes, length));
      assertThat(refusal).as("%d bytes", length).isNotNull();
      assertThat(refusal.offset()).isBetween(0L, (long) length);
    }
  }

  /// The file is sparse, and none of it is read.
  @Test
  void tooLarge() throws IOException {
    Path file = StoreFolder.manifest(folder);
    try (RandomAccessFile large = new RandomAccessFile(file.toFile(), "rw")) {
      large.setLength(Manifest.MAX_BYTES + 1);
    }
    assertThat(
            catchThrowableOfType(
                    MalformedFileException.class,
                    () -> Manifest.read(GantrySession.shared(), Location.of(file)))
                .kind())
        .isEqualTo("manifest-too-large");
  }

  @Test
  void noFileAtAll() {
    assertThat(
            catchThrowableOfType(
                    TransferException.class,
                    () ->
                        Manifest.read(GantrySession.shared(), Location.of(folder.resolve("none"))))
                .getMessage())
        .contains("ENOENT");
  }
}
