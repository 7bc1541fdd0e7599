// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.Location;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.spi.Store;
import dev.gantry.testing.StoreContract;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.junit.jupiter.api.io.TempDir;

class PosixStoreTest extends StoreContract {
  @TempDir Path folder;

  FileCalls calls() {
    return Libc.INSTANCE;
  }

  @Override
  protected Store store() {
    return new LocalStore(calls());
  }

  @Override
  protected Location put(String name, byte[] bytes) throws IOException {
    Path file = folder.resolve(name);
    Path written = Files.write(folder.resolve("new"), bytes);
    return Location.of(Files.move(written, file, StandardCopyOption.REPLACE_EXISTING));
  }

  @Override
  protected Location missing() {
    return Location.of(folder.resolve("missing"));
  }
}
