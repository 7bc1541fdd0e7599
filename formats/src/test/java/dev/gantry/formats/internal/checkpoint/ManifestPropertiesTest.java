// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.checkpoint.Manifest.FileEntry;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.SequencedMap;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.lifecycle.AfterContainer;
import net.jqwik.api.lifecycle.BeforeContainer;

class ManifestPropertiesTest {
  private static Path file = Path.of("");

  @BeforeContainer
  static void makeFile() throws IOException {
    file = Files.createTempFile("gantry", ".json");
  }

  @AfterContainer
  static void deleteFile() throws IOException {
    Files.delete(file);
  }

  /// Returns any Unicode text.
  private static Arbitrary<String> texts() {
    return Arbitraries.integers()
        .between(0, Character.MAX_CODE_POINT)
        .filter(point -> point < Character.MIN_SURROGATE || point > Character.MAX_SURROGATE)
        .array(int[].class)
        .ofMaxSize(8)
        .map(points -> new String(points, 0, points.length));
  }

  private static <V> Arbitrary<SequencedMap<String, V>> maps(Arbitrary<V> values) {
    return Arbitraries.maps(texts(), values).ofMaxSize(5).map(LinkedHashMap::new);
  }

  private static Arbitrary<Double> metrics() {
    return Arbitraries.oneOf(
        Arbitraries.of(
            Double.NaN,
            Double.POSITIVE_INFINITY,
            Double.NEGATIVE_INFINITY,
            Double.MAX_VALUE,
            Double.MIN_VALUE,
            -0.0),
        Arbitraries.longs().map(Double::longBitsToDouble));
  }

  private static Arbitrary<FileEntry> files() {
    return Combinators.combine(
            texts()
                .filter(name ->
                    !name.isEmpty()
                        && !name.equals(".")
                        && !name.equals("..")
                        && name.indexOf('/') < 0
                        && name.indexOf('\0') < 0),
            Arbitraries.longs().greaterOrEqual(0),
            Arbitraries.integers(),
            maps(Arbitraries.integers()))
        .as(FileEntry::new);
  }

  @Provide
  Arbitrary<Manifest> manifests() {
    return Combinators.combine(
            Arbitraries.longs().greaterOrEqual(0),
            Arbitraries.longs().greaterOrEqual(0),
            maps(Arbitraries.longs().greaterOrEqual(0)).map(SaveHistory::new),
            Arbitraries.of(true, false),
            maps(texts()),
            maps(metrics()),
            maps(texts()),
            files().list().ofMaxSize(4).uniqueElements(FileEntry::name))
        .as(Manifest::new)
        .withoutEdgeCases();
  }

  private static Manifest read(byte[] bytes) {
    try {
      return Manifest.read(GantrySession.shared(), Location.of(Files.write(file, bytes)));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Property(tries = 500)
  void whatIsWrittenIsRead(@ForAll("manifests") Manifest manifest) {
    Manifest found = read(ManifestWriter.bytes(manifest));
    assertThat(found).isEqualTo(manifest);
    assertThat(List.copyOf(found.metrics().keySet()))
        .as("in order")
        .isEqualTo(List.copyOf(manifest.metrics().keySet()));
  }

  @Property(tries = 1000)
  void changedCharactersAreReadOrRefused(@ForAll long seed) {
    byte[] changed =
        ManifestWriter.bytes(
            new Manifest(
                7,
                3,
                SaveHistory.NONE.then("a", 3),
                true,
                new LinkedHashMap<>(Map.of("a", "b")),
                new LinkedHashMap<>(Map.of("loss", 0.5)),
                new LinkedHashMap<>(),
                List.of(new FileEntry("m", 1, 2, new LinkedHashMap<>(Map.of("w", 3))))));
    Random random = new Random(seed);
    String characters = "{}[]\",:\\0123456789-.eEun/ \u0000\u00ff";
    for (int i = random.nextInt(1, 4); i > 0; i--) {
      changed[random.nextInt(changed.length)] =
          (byte) characters.charAt(random.nextInt(characters.length()));
    }
    try {
      Manifest manifest = read(changed);
      assertThat(read(ManifestWriter.bytes(manifest))).isEqualTo(manifest);
    } catch (MalformedFileException e) {
      assertThat(e.kind()).matches("[a-z0-9]+(-[a-z0-9]+)*");
      assertThat(e.offset()).isBetween(0L, (long) changed.length);
      assertThat(e.getMessage()).hasLineCount(1);
    }
  }
}
