// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.spi.StoredTensor;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Gantry under a class loader below DJL's, as DJL Serving loads the jars of a model's `libs`
/// folder.
class ChildLoaderTest {
  @TempDir private Path folder;

  @Test
  void aLibraryBelowDjlsClassLoaderLoadsAndPredicts() throws Exception {
    Path file =
        new WeightsFile()
            .tensor("01Linear_weight", DType.BF16, TensorShape.of(2, 2), 1, 2, -3, 4)
            .vector("01Linear_bias", DType.BF16, 0.5, -100)
            .tensor("question", DType.BF16, TensorShape.of(1, 2), 1, 2)
            .write(folder.resolve("model.safetensors"));
    URL[] ours =
        Stream.of(ChildLoaderProgram.class, Weights.class, StoredTensor.class, GantrySession.class)
            .map(type -> type.getProtectionDomain().getCodeSource().getLocation())
            .toArray(URL[]::new);
    try (URLClassLoader child = new URLClassLoader(ours, new Without(ours))) {
      Class<?> program = child.loadClass(ChildLoaderProgram.class.getName());
      assertThat(program).isNotEqualTo(ChildLoaderProgram.class);
      @SuppressWarnings("unchecked")
      Function<Path, float[]> server =
          (Function<Path, float[]>) program.getDeclaredConstructor().newInstance();
      assertThat(server.apply(file)).containsExactly(5.5f, 0);
    }
  }

  /// The test's class loader without the classes of some jars or folders.
  static final class Without extends ClassLoader {
    private final URL[] hidden;

    Without(URL[] hidden) {
      super(Without.class.getClassLoader());
      this.hidden = hidden;
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      URL found = getParent().getResource(name.replace('.', '/') + ".class");
      if (found != null
          && Stream.of(hidden).anyMatch(place -> found.toString().contains(place.getPath()))) {
        throw new ClassNotFoundException(name);
      }
      return super.loadClass(name, resolve);
    }
  }
}
