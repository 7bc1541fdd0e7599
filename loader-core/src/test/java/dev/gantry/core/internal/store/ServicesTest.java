// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.spi.Store;
import dev.gantry.testing.MemoryStore;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Stores that a program registers in its own class loader.
class ServicesTest {
  @TempDir private Path folder;
  private final ClassLoader before = Thread.currentThread().getContextClassLoader();
  private URLClassLoader program;

  @BeforeEach
  void enter() throws IOException {
    program = new URLClassLoader(new URL[] {folder.toUri().toURL()}, before);
    Thread.currentThread().setContextClassLoader(program);
  }

  @AfterEach
  void leave() throws IOException {
    Thread.currentThread().setContextClassLoader(before);
    program.close();
  }

  private void register(String name) throws IOException {
    Path services = Files.createDirectories(folder.resolve("META-INF/services"));
    Files.writeString(services.resolve(Store.class.getName()), name + "\n");
  }

  @Test
  void aWrongRegistrationIsNamedEachTime() throws IOException {
    register("no.such.Store");
    Location file = Location.of("http://127.0.0.1:1/file");
    try (Stores stores = new Stores(FileCalls.ofPlatform())) {
      for (int i = 0; i < 2; i++) {
        assertThatThrownBy(() -> stores.open(file, CachePolicy.BUFFERED))
            .isInstanceOf(MisuseException.class)
            .hasMessageContainingAll("META-INF/services", "no.such.Store");
      }
    }
  }

  @Test
  void aStoreThatIsRegisteredTwiceIsThereOnce() throws IOException {
    register(MemoryStore.class.getName());
    assertThat(Services.find(Store.class))
        .extracting(store -> (Object) store.getClass())
        .contains(MemoryStore.class)
        .doesNotHaveDuplicates();
  }

  /// This happens in a container that has its own copy of Gantry beside the program's.
  @Test
  void aLoaderThatHasAnotherClassOfTheNameIsPassedOver() throws IOException {
    register("no.such.Store");
    try (URLClassLoader other = new URLClassLoader(new URL[] {folder.toUri().toURL()}, null)) {
      Thread.currentThread().setContextClassLoader(other);
      assertThat(Services.find(Store.class)).isNotEmpty();
    }
  }
}
