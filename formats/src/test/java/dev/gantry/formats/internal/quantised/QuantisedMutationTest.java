// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.quantised;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.json.JsonTree;
import dev.gantry.formats.internal.weights.TensorValues;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Quantised weights of which the configuration, a header or values are damaged are refused or read, and nothing worse.
/// The system property `gantry.mutations` gives the number of damaged folders, `gantry.seed` the seed.
class QuantisedMutationTest {
  private static final Path CORPUS = Path.of("src/test/resources/corpus/quantised");

  /// Codes of two bits become values of 32.
  private static final long MAX_GROWTH = 16;

  private static final Pattern TOKEN = Pattern.compile("\"(?:[^\"\\\\]|\\\\.)*\"|[-+.\\w]+|[^\\s]");
  private static final List<String> ODD =
      List.of(
          "0",
          "-1",
          "1",
          "2",
          "3",
          "8",
          "31",
          "4294967296",
          "9223372036854775807",
          "1e300",
          "0.5",
          "null",
          "true",
          "[]",
          "{}",
          "\"\"",
          "\"re:(a|b)*+\"",
          "\"I32\"",
          "\"U8\"",
          "\"F32\"",
          "\"F8_E8M0\"",
          "[2,2]");

  private static final String ODD_CHARACTERS = "\\(.*)+|s0129-";

  @TempDir private Path folder;

  private static List<Map<String, byte[]>> sets() throws IOException {
    List<Map<String, byte[]>> sets = new ArrayList<>();
    try (Stream<Path> folders = Files.list(CORPUS)) {
      for (Path set : folders.sorted().toList()) {
        Map<String, byte[]> files = new TreeMap<>();
        try (Stream<Path> listed = Files.list(set)) {
          for (Path file : listed.toList()) {
            files.put(file.getFileName().toString(), Files.readAllBytes(file));
          }
        }
        files.remove("expected.json");
        sets.add(files);
      }
    }
    return sets;
  }

  @Test
  void aDamagedFolderIsRefusedOrRead() throws IOException {
    List<Map<String, byte[]>> sets = sets();
    Random random = new Random(Long.getLong("gantry.seed", 20261124));
    int mutations = Integer.getInteger("gantry.mutations", 3000);
    int each = Math.ceilDiv(mutations, sets.size());
    int refused = 0;
    for (Map<String, byte[]> set : sets) {
      for (Map.Entry<String, byte[]> file : set.entrySet()) {
        Files.write(folder.resolve(file.getKey()), file.getValue());
      }
      List<String> names = List.copyOf(set.keySet());
      for (int i = 0; i < each; i++) {
        String name = names.get(random.nextInt(names.size()));
        byte[] whole = set.get(name);
        byte[] damaged = damaged(name, whole, random);
        Files.write(folder.resolve(name), damaged);
        refused += isRefused("mutation %d of %s in %s".formatted(i, name, names), damaged) ? 1 : 0;
        Files.write(folder.resolve(name), whole);
      }
      for (String name : names) {
        Files.delete(folder.resolve(name));
      }
    }
    assertThat(refused).isBetween(mutations / 3, mutations);
  }

  /// A pattern that never ends, one that is none, and one for which the matcher calls itself too often.
  @ParameterizedTest
  @ValueSource(strings = {"(a*)*b", "(a", "(a|b)*c"})
  void aPatternThatCannotBeMatchedIsRefused(String pattern) {
    NamePatterns patterns = new NamePatterns(Location.of(folder));
    String name = "a".repeat(100_000);
    MalformedFileException fault =
        catchThrowableOfType(MalformedFileException.class, () -> patterns.matches(pattern, name));
    assertThat(fault.kind()).isEqualTo("bad-pattern");
  }

  /// A configuration of many small objects would take a hundred times its bytes.
  @Test
  void aConfigurationOfTooManyEntriesIsRefused() throws IOException {
    Path file = folder.resolve("config.json");
    Files.writeString(file, "{\"a\":[" + "{\"\":1},".repeat(250_000) + "1]}");
    try (FileBytes bytes = FileBytes.open(GantrySession.shared(), file)) {
      MalformedFileException fault =
          catchThrowableOfType(MalformedFileException.class, () -> JsonTree.read(bytes));
      assertThat(fault.kind()).isEqualTo("too-many-entries");
    }
  }

  private boolean isRefused(String what, byte[] damaged) throws IOException {
    try {
      GantrySession session = GantrySession.shared();
      List<StoredTensor> tensors =
          List.copyOf(
              QuantisedWeights.tensors(session, WeightsFormats.open(session, Location.of(folder)))
                  .values());
      long stored = 1 << 20;
      try (Stream<Path> files = Files.list(folder)) {
        for (Path file : files.toList()) {
          stored += Files.size(file);
        }
      }
      assertThat(tensors.stream().mapToLong(StoredTensor::bytes).sum())
          .as(what)
          .isLessThanOrEqualTo(MAX_GROWTH * stored);
      for (StoredTensor tensor : tensors) {
        assertThat(TensorValues.bytes(tensor)).as(what).hasSize((int) tensor.bytes());
      }
      return false;
    } catch (MalformedFileException fault) {
      assertThat(fault.offset()).as(what).isBetween(0L, 1L << 20);
      assertThat(fault.getMessage()).as(what).doesNotContain("\n");
    } catch (TransferException missing) {
      assertThat(missing.isNotFound()).as(what + missing).isTrue();
    } catch (RuntimeException | StackOverflowError | OutOfMemoryError e) {
      Files.write(Path.of(System.getProperty("java.io.tmpdir"), "gantry-damaged"), damaged);
      throw new AssertionError(what, e);
    }
    return true;
  }

  private static byte[] damaged(String name, byte[] whole, Random random) {
    if (random.nextInt(8) == 0) {
      return bytesDamaged(whole, random);
    }
    if (name.endsWith(".json")) {
      return text(new String(whole, ISO_8859_1), random).getBytes(ISO_8859_1);
    }
    ByteBuffer file = ByteBuffer.wrap(whole).order(ByteOrder.LITTLE_ENDIAN);
    int header = (int) file.getLong(0);
    byte[] json =
        text(new String(whole, Long.BYTES, header, ISO_8859_1), random).getBytes(ISO_8859_1);
    int data = whole.length - Long.BYTES - header;
    return ByteBuffer.allocate(Long.BYTES + json.length + data)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putLong(json.length)
        .put(json)
        .put(whole, Long.BYTES + header, data)
        .array();
  }

  /// Changes tokens of JSON, most of them to others of the same document.
  private static String text(String json, Random random) {
    List<String> tokens =
        TOKEN.matcher(json).results().map(found -> found.group()).collect(Collectors.toList());
    for (int change = 0; change <= random.nextInt(3); change++) {
      int at = random.nextInt(tokens.size());
      // Punctuation stays as it is mostly, or little would be read.
      for (int tries = 0; tries < 8 && tokens.get(at).matches("[^\\w\"]"); tries++) {
        at = random.nextInt(tokens.size());
      }
      switch (random.nextInt(4)) {
        case 0 -> tokens.set(at, ODD.get(random.nextInt(ODD.size())));
        case 1 -> {
          String old = tokens.get(at);
          int inside = random.nextInt(old.length());
          char other = ODD_CHARACTERS.charAt(random.nextInt(ODD_CHARACTERS.length()));
          tokens.set(at, old.substring(0, inside) + other + old.substring(inside + 1));
        }
        default -> tokens.set(at, tokens.get(random.nextInt(tokens.size())));
      }
    }
    return String.join("", tokens);
  }

  private static byte[] bytesDamaged(byte[] whole, Random random) {
    byte[] damaged = whole.clone();
    for (int change = 0; change <= random.nextInt(4); change++) {
      damaged[random.nextInt(whole.length)] = (byte) random.nextInt();
    }
    return random.nextInt(4) == 0 ? Arrays.copyOf(damaged, random.nextInt(whole.length)) : damaged;
  }
}
