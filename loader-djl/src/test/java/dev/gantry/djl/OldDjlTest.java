// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.engine.Engine;
import ai.djl.ndarray.NDManager;
import ai.djl.util.Utils;
import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.testing.ChildJvm;
import java.io.IOException;
import java.io.InputStream;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Runs in a JVM of its own, whose class path begins with the metadata of another DJL's jars.
@ExtendWith(NoLeaks.class)
class OldDjlTest {
  private static final String API = "ai/djl/engine/api.properties";

  @TempDir Path folder;

  private ChildJvm.Result loadBeside(String file, String version) throws IOException {
    Path weights =
        new WeightsFile()
            .raw("bytes", DType.U8, TensorShape.of(1000), new byte[1000])
            .write(folder.resolve("weights.safetensors"));
    Path changed = folder.resolve("classes").resolve(file);
    Files.createDirectories(changed.getParent());
    Properties properties = new Properties();
    try (InputStream own = NDManager.class.getClassLoader().getResourceAsStream(file)) {
      properties.load(own);
    }
    properties.setProperty("djl_version", version);
    try (Writer writer = Files.newBufferedWriter(changed)) {
      properties.store(writer, null);
    }
    Path cache = cacheWith(version);
    try {
      return ChildJvm.run(
          "256m",
          Map.of(
              "JDK_JAVA_OPTIONS",
              "-Xbootclasspath/a:" + folder.resolve("classes"),
              "ENGINE_CACHE_DIR",
              cache.toString()),
          SmallHeapProgram.class,
          weights.toString());
    } finally {
      for (Path link : filesOf(cache)) {
        Files.delete(link);
      }
    }
  }

  /// Returns a copy of DJL's cache that also has the JNI library of another version. DJL looks for
  /// the library of its jar's version before it calls Gantry, and would otherwise try to download
  /// it.
  private Path cacheWith(String version) throws IOException {
    Engine.getInstance();
    Path cache = folder.resolve("cache");
    Path own = Utils.getEngineCacheDir("pytorch");
    if (!Files.isDirectory(own)) {
      // PYTORCH_LIBRARY_PATH names the libraries, and the child inherits the variable.
      return Files.createDirectories(cache);
    }
    for (Path file : filesOf(own)) {
      Path linked = cache.resolve("pytorch").resolve(own.relativize(file));
      Files.createDirectories(linked.getParent());
      Files.createSymbolicLink(linked, file);
      if (file.endsWith("0.35.1-libdjl_torch.so") && !version.equals("0.35.1")) {
        Files.createSymbolicLink(linked.resolveSibling(version + "-libdjl_torch.so"), file);
      }
    }
    return cache;
  }

  private static List<Path> filesOf(Path folder) throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      return files.filter(Files::isRegularFile).toList();
    }
  }

  @ParameterizedTest
  @CsvSource({API + ",ai.djl:api", "pytorch-engine.properties,ai.djl.pytorch:pytorch-engine"})
  void anOlderJarIsRefusedByItsVersionAndTheLeast(String file, String jar) throws IOException {
    ChildJvm.Result result = loadBeside(file, "0.34.0");
    assertThat(result.exit()).isEqualTo(1);
    assertThat(result.err())
        .contains("MisuseException: " + jar + " must be of DJL 0.35.1 or newer (was 0.34.0)");
  }

  @Test
  void newerOnesAndThoseThatTellNoVersionAreTaken() throws IOException {
    assertThat(loadBeside(API, "0.100.0").requirePassed()).contains("1000 bytes");
    assertThat(loadBeside(API, "${djl.version}").requirePassed()).contains("1000 bytes");
  }
}
