// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.ResourceHandler;
import org.eclipse.jetty.util.resource.ResourceFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Loads from Jetty, a server that other people wrote.
@ExtendWith(NoLeaks.class)
class JettyTest {
  private static final int LENGTH = 5_000_011;

  @TempDir Path folder;
  private final Server server = new Server();
  private final ServerConnector connector = new ServerConnector(server);
  private final ResourceHandler files = new ResourceHandler();
  private final GantrySession session = GantrySession.open();
  private Path local;

  @BeforeEach
  void start() throws Exception {
    local = TestFiles.write(folder.resolve("weights one.bin"), 3, LENGTH);
    files.setBaseResource(ResourceFactory.of(files).newResource(folder));
    files.setAcceptRanges(true);
    files.setMinMappedFileSize(Integer.MAX_VALUE);
    server.addConnector(connector);
    server.setHandler(files);
    server.start();
  }

  @AfterEach
  void stop() throws Exception {
    session.close();
    server.stop();
  }

  private Location url(String name) {
    return Location.of("http://localhost:" + connector.getLocalPort() + "/" + name);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void everyByteArrives(boolean etags) {
    files.setEtags(etags);
    Random random = new Random(5);
    List<ExtentRequest> remote = new ArrayList<>();
    List<ExtentRequest> here = new ArrayList<>();
    for (int i = 0; i < 40; i++) {
      int length = random.nextInt(300_000);
      int offset = random.nextInt(LENGTH - length);
      remote.add(new ExtentRequest(new Extent(url("weights%20one.bin"), offset, length), 8));
      here.add(new ExtentRequest(new Extent(local, offset, length), 8));
    }
    TransferOptions options =
        TransferOptions.defaults().withLimits(new PlanLimits(128 << 10, 4096, 1 << 20));
    try (Loaded loaded = session.load(remote, Device.HOST, options)) {
      assertThat(TestFiles.firstDifference(loaded, here)).isEmpty();
    }
  }

  @Test
  void aFileThatIsNotThereIsAnError() {
    assertThatThrownBy(() -> session.openFile(url("missing")).close())
        .hasMessageContaining("status 404");
  }
}
