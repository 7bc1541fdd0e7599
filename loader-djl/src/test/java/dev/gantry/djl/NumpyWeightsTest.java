// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// NumPy's files as NDArrays.
@ExtendWith(NoLeaks.class)
class NumpyWeightsTest {
  private static final Path CORPUS =
      Path.of(System.getProperty("gantry.corpus", "../formats/src/test/resources/corpus"))
          .resolve("numpy");

  @TempDir private Path folder;

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void theCorpusLoadsToTheValuesThatNumpyHas(boolean lazy) throws IOException {
    Map<String, String> expected = expected();
    Map<String, String> loaded = new TreeMap<>();
    for (String file :
        expected.keySet().stream()
            .map(key -> key.substring(0, key.indexOf('#')))
            .distinct()
            .toList()) {
      try (NDManager manager = NDManager.newBaseManager();
          Weights weights = Weights.open(CORPUS.resolve(file))) {
        NDList arrays = weights.load(manager, Machine.loadOptions(lazy).build());
        assertThat(weights.tensors().keySet()).isEqualTo(names(arrays));
        try (ArraySources sources = ArraySources.of(arrays)) {
          sources
              .values()
              .forEach((name, source) ->
                  loaded.put(
                      file + "#" + (file.endsWith(".npz") ? name : ""),
                      weights.tensors().get(name).dtype() + " " + sha256(source)));
        }
      }
    }
    assertThat(loaded).isEqualTo(expected);
  }

  private static java.util.Set<String> names(NDList arrays) {
    return new java.util.LinkedHashSet<>(arrays.stream().map(NDArray::getName).toList());
  }

  private static String sha256(Source source) {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment copy = arena.allocate(Math.max(source.length(), 1)).asSlice(0, source.length());
      GantrySession.shared().copy(source, copy);
      byte[] bytes = copy.toArray(ValueLayout.JAVA_BYTE);
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  /// Returns the dtype and the digest by `file#name`.
  private static Map<String, String> expected() throws IOException {
    Map<String, String> expected = new TreeMap<>();
    try (JsonParser json =
        new JsonFactory().createParser(CORPUS.resolve("expected.json").toFile())) {
      String file = "";
      String name = "";
      String dtype = "";
      int depth = 0;
      for (JsonToken token = json.nextToken(); token != null; token = json.nextToken()) {
        depth += token.isStructStart() ? 1 : token.isStructEnd() ? -1 : 0;
        String key = json.currentName();
        if (token == JsonToken.FIELD_NAME && depth == 1) {
          file = key;
        } else if (token == JsonToken.FIELD_NAME && depth == 3) {
          name = key;
        } else if (token == JsonToken.VALUE_STRING && key.equals("dtype")) {
          dtype = json.getText();
        } else if (token == JsonToken.VALUE_STRING && key.equals("sha256")) {
          expected.put(file + "#" + name, dtype + " " + json.getText());
        }
      }
    }
    return expected;
  }

  @Test
  void selectedRowsAndCastsWorkOnEveryEncoding() {
    for (String file : List.of("stored.npz", "deflated.npz")) {
      try (NDManager manager = NDManager.newBaseManager();
          Weights weights = Weights.open(CORPUS.resolve(file))) {
        TensorSelection selection =
            TensorSelection.names(List.of("a", "f", "s")).rows("a", 1, 3).rows("f", 1, 2);
        LoadOptions options =
            LoadOptions.builder().optSelection(selection).optCast(DataType.FLOAT32).build();
        NDList all = weights.load(manager);
        NDList some = weights.load(manager, options);
        assertThat(some.get("f").getDataType()).isEqualTo(DataType.FLOAT32);
        assertThat(some.get("f").getShape()).isEqualTo(new Shape(1, 2));
        assertThat(some.get("f")).isEqualTo(all.get("f").get("1:2").toType(DataType.FLOAT32, true));
        assertThat(some.get("a")).isEqualTo(all.get("a").get("1:3"));
        assertThat(some.get("s").toIntArray()).containsExactly(all.get("s").toIntArray());
      }
    }
  }

  @Test
  void decodedTensorsGoWhereTheyAreWanted() {
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(CORPUS.resolve("deflated.npz"))) {
      NDList all = weights.load(manager);
      Map<String, byte[]> given = new LinkedHashMap<>();
      Map<String, Memory> memory = new LinkedHashMap<>();
      for (String name : List.of("f", "a")) {
        byte[] bytes = new byte[Math.toIntExact(weights.tensors().get(name).bytes())];
        given.put(name, bytes);
        memory.put(name, new Memory.OnHost(MemorySegment.ofArray(bytes)));
      }
      LiveResources.Snapshot before = NoLeaks.held();
      TransferReport report = weights.copyToMemory(memory, LoadOptions.defaults());
      assertThat(NoLeaks.held()).isEqualTo(before);
      assertThat(report.bytes()).isEqualTo(given.get("f").length + given.get("a").length);
      given.forEach((name, bytes) -> assertThat(bytes).isEqualTo(all.get(name).toByteArray()));
    }
  }

  /// The size of the memory is checked first, because the code that copies a decoded tensor does
  /// not know it.
  @Test
  void memoryOfAnotherSizeIsRefused() {
    try (Weights weights = Weights.open(CORPUS.resolve("deflated.npz"))) {
      for (int bytes : new int[] {1, 1000}) {
        byte[] given = new byte[bytes];
        Map<String, Memory> memory = Map.of("f", new Memory.OnHost(MemorySegment.ofArray(given)));
        assertThatThrownBy(() -> weights.copyToMemory(memory, LoadOptions.defaults()))
            .isInstanceOf(MisuseException.class)
            .hasMessageEndingWith("bytes, and the memory for it " + bytes);
        assertThat(given).containsOnly(0);
      }
    }
  }

  @Test
  void memoryOfTwoDecodedTensorsMustNotOverlap() {
    try (Weights weights = Weights.open(CORPUS.resolve("deflated.npz"))) {
      int f = Math.toIntExact(weights.tensors().get("f").bytes());
      int a = Math.toIntExact(weights.tensors().get("a").bytes());
      byte[] given = new byte[f + a - 1];
      MemorySegment all = MemorySegment.ofArray(given);
      Map<String, Memory> memory =
          Map.of(
              "f",
              new Memory.OnHost(all.asSlice(0, f)),
              "a",
              new Memory.OnHost(all.asSlice(f - 1)));
      assertThatThrownBy(() -> weights.copyToMemory(memory, LoadOptions.defaults()))
          .isInstanceOf(MisuseException.class)
          .hasMessage("the memory for f overlaps that for a");
      assertThat(given).containsOnly(0);
    }
  }

  @Test
  void aDamagedMemberIsFoundByAVerifiedLoad() {
    LoadOptions verified = LoadOptions.builder().optVerify(true).build();
    try (NDManager manager = NDManager.newBaseManager(Device.cpu());
        Weights weights = Weights.open(CORPUS.resolve("crc.npz"))) {
      assertThatThrownBy(() -> weights.load(manager, verified))
          .isInstanceOfSatisfying(
              MalformedFileException.class,
              fault -> assertThat(fault.kind()).isEqualTo("checksum-mismatch"));
    }
    try (NDManager manager = NDManager.newBaseManager(Device.cpu());
        Weights weights = Weights.open(CORPUS.resolve("stored.npz"));
        NDList all = weights.load(manager, verified)) {
      assertThat(all).isNotEmpty();
    }
  }

  @Test
  void whatIsNoWeightsSaysWhatItIs() throws IOException {
    refused("version https://git-lfs.github.com/spec/v1\n", "another-format", "Git LFS pointer");
    refused("PK\u0003\u0004\u0014\0\0\0", "another-format", "ZIP archive");
    refused("<!DOCTYPE html><html></html>", "another-format", "HTML");
    refused("\u0080\u0002}q\0.", "another-format", "pickle");
    refused("some text that goes on and on", "unknown-format", "safetensors, NumPy");
  }

  private void refused(String content, String kind, String words) throws IOException {
    Path file = folder.resolve("model.bin");
    Files.write(file, content.getBytes(java.nio.charset.StandardCharsets.ISO_8859_1));
    assertThatThrownBy(() -> Weights.open(file))
        .isInstanceOfSatisfying(
            MalformedFileException.class,
            fault -> {
              assertThat(fault.kind()).isEqualTo(kind);
              assertThat(fault.detail()).contains(words);
            });
  }
}
