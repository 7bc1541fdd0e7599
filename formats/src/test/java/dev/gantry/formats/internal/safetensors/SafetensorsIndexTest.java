// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SafetensorsIndexTest {
  @TempDir Path folder;

  private SafetensorsIndex read(String json) throws IOException {
    return SafetensorsIndex.read(
        GantrySession.shared(),
        Location.of(
            Files.writeString(
                folder.resolve("model.safetensors.index.json"), json.replace('\'', '"'))));
  }

  @Test
  void theMapIsReadInItsOrder() throws IOException {
    SafetensorsIndex index =
        read(
            """
            {'metadata': {'total_size': 12, 'more': [{}]},
             'weight_map': {'b': 'two.safetensors', 'a': 'one.safetensors'}, 'other': 1}
            """);
    assertThat(index.weightMap().keySet()).containsExactly("b", "a");
    assertThat(index.weightMap().get("a")).returns("one.safetensors", e -> e.dataFile());
  }

  @ParameterizedTest
  @CsvSource(
      quoteCharacter = '`',
      value = {
        "`{'weight_map':{}}`",
        "`{'metadata':null,'weight_map':{}}`",
        "`{'metadata':{'total_size':1.5e10},'weight_map':{}}`",
        "`{'metadata':{'total_size':'12'},'weight_map':{}}`",
        "`{'metadata':{'total_size':-1},'weight_map':{}}`",
        "`{'metadata':{'total_size':99999999999999999999},'weight_map':{}}`",
      })
  void theSizeIsOnlyAdvice(String json) throws IOException {
    assertThat(read(json).weightMap()).isEmpty();
  }

  @ParameterizedTest(name = "{0}: {1} at {2}")
  @CsvSource(
      quoteCharacter = '`',
      value = {
        "`{'weight_map':{'a':'f'}`, unexpected-end, 23",
        "`[]`, not-an-object, 0",
        "`{'metadata':{}}`, missing-weight-map, 0",
        "`{'weight_map':null}`, invalid-weight-map, 14",
        "`{'weight_map':{'a':1}}`, shard-name-not-a-string, 19",
        "`{'weight_map':{'a':'f','a':'f'}}`, duplicate-tensor, 23",
        "`{'weight_map':{'a':'f','a':'g'}}`, tensor-in-two-shards, 23",
        "`{'weight_map':{},'weight_map':{}}`, duplicate-field, 17",
        "`{'weight_map':{'a':'../f'}}`, shard-name-with-dot-dot, 19",
        "`{'weight_map':{'a':'b/../f'}}`, shard-name-with-dot-dot, 19",
        "`{'weight_map':{'a':'..\\\\f'}}`, shard-name-with-dot-dot, 19",
        "`{'weight_map':{'a':'..'}}`, shard-name-with-dot-dot, 19",
        "`{'weight_map':{'a':'/etc/passwd'}}`, shard-name-with-separator, 19",
        "`{'weight_map':{'a':'b/f'}}`, shard-name-with-separator, 19",
        "`{'weight_map':{'a':'b\\\\f'}}`, shard-name-with-separator, 19",
        "`{'weight_map':{'a':''}}`, unsafe-shard-name, 19",
        "`{'weight_map':{'a':'.'}}`, unsafe-shard-name, 19",
        "`{'weight_map':{'a':'f\\u0000'}}`, unsafe-shard-name, 19",
        "`{'weight_map':{}} {`, trailing-characters, 18",
      })
  void aFaultIsNamed(String json, String kind, long offset) {
    MalformedFileException refusal =
        catchThrowableOfType(MalformedFileException.class, () -> read(json));
    assertThat(refusal).isNotNull();
    assertThat(refusal.kind()).isEqualTo(kind);
    assertThat(refusal.offset()).isEqualTo(offset);
    assertThat(refusal.getMessage()).hasLineCount(1);
  }

  @Test
  void twoDotsInsideANameLeadNowhere() throws IOException {
    assertThat(read("{'weight_map':{'a':'model..safetensors'}}").weightMap()).hasSize(1);
  }

  @Test
  void aHugeIndexIsRefusedUnread() throws IOException {
    Path file = folder.resolve("huge.safetensors.index.json");
    try (RandomAccessFile sparse = new RandomAccessFile(file.toFile(), "rw")) {
      sparse.setLength(SafetensorsIndex.MAX_INDEX_BYTES + 1);
    }
    assertThat(
            catchThrowableOfType(
                MalformedFileException.class,
                () -> SafetensorsIndex.read(GantrySession.shared(), Location.of(file))))
        .returns("index-too-large", MalformedFileException::kind);
  }
}
