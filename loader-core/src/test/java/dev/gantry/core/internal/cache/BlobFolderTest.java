// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.internal.http.HttpStore;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.spi.LocalFile;
import dev.gantry.core.spi.Store;
import dev.gantry.core.spi.StoredFile;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RangeServer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(NoLeaks.class)
class BlobFolderTest {
  @TempDir private Path folder;

  /// A place that publishes nothing, as a process that is killed before it can.
  private final class Place implements BlobPlace {
    private final List<Path> whole = new ArrayList<>();

    @Override
    public Path incomplete(Location.Remote file, String version) {
      return folder.resolve("blob.incomplete");
    }

    @Override
    public Path lock(Path incomplete) {
      return folder.resolve("lock");
    }

    @Override
    public boolean isPublished(Path incomplete) {
      return false;
    }

    @Override
    public void whole(Path incomplete) {
      whole.add(incomplete);
    }

    @Override
    public void failed(Path incomplete) {}

    @Override
    public void closed(Path incomplete) {}
  }

  @Test
  void aFileWhoseProcessWasKilledBeforeItsPublicationIsPublishedByTheNext() {
    try (RangeServer server = new RangeServer();
        Store http = new HttpStore()) {
      Location.Remote file = (Location.Remote) server.put("data", new byte[] {1, 2, 3});
      Place place = new Place();
      for (int process = 1; process <= 2; process++) {
        try (RemoteCache cache = new RemoteCache(Libc.INSTANCE, place)) {
          StoredFile opened =
              cache.open(file, CachePolicy.BUFFERED, () -> http.open(file, CachePolicy.BUFFERED));
          assertThat(opened instanceof LocalFile).isEqualTo(process == 2);
          try (SourceFile source = new SourceFile(file, opened)) {
            assertThat(RemoteCacheFixture.read(source, 0, 3)).containsExactly(1, 2, 3);
          }
        }
        assertThat(place.whole).hasSize(process);
      }
    }
  }
}
