// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.spi.ReadRequest;
import dev.gantry.core.spi.Store;
import dev.gantry.core.spi.StoredFile;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/// Stores of a program's own that break the rules of [Store].
class StoresTest {
  private static final Location FILE = Location.of("own://folder/file");
  private final List<StoredFile> closed = new ArrayList<>();

  private record Own(StoredFile file) implements Store {
    @Override
    public Set<String> schemes() {
      return Set.of("own");
    }

    @Override
    public StoredFile open(Location location, CachePolicy policy) {
      return file;
    }
  }

  private final class OwnFile implements StoredFile {
    private final long size;
    private final int atOnce;
    private final Object identity;

    OwnFile(long size, int atOnce, Object identity) {
      this.size = size;
      this.atOnce = atOnce;
      this.identity = identity;
    }

    @Override
    public long size() {
      return size;
    }

    @Override
    public Object identity() {
      return identity;
    }

    @Override
    public int requestsAtOnce() {
      return atOnce;
    }

    @Override
    public void read(ReadRequest request) {
      throw new AssertionError("nothing is read");
    }

    @Override
    public void close() {
      closed.add(this);
    }
  }

  private static void refuses(StoredFile file, String... words) {
    try (Stores stores = new Stores(FileCalls.ofPlatform(), List.of(new Own(file)))) {
      assertThatThrownBy(() -> stores.open(FILE, CachePolicy.BUFFERED))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining(FILE.toString())
          .hasMessageContainingAll(words);
    }
  }

  @Test
  void aStoreThatReturnsNoFileIsNamed() {
    refuses(null, Own.class.getName(), "open()", "null");
  }

  @Test
  void aFileWithAWrongSizeRequestsOrIdentityIsNamedAndClosed() {
    OwnFile size = new OwnFile(-1, 1, "a");
    OwnFile atOnce = new OwnFile(1, 0, "a");
    OwnFile identity = new OwnFile(1, 1, null);
    refuses(size, OwnFile.class.getName(), "size()", "(was -1)");
    refuses(atOnce, OwnFile.class.getName(), "requestsAtOnce()", "(was 0)");
    refuses(identity, OwnFile.class.getName(), "identity()", "null");
    assertThat(closed).containsExactly(size, atOnce, identity);
  }
}
