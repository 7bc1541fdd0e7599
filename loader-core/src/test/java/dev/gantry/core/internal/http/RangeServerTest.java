// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.OwnProcess;
import dev.gantry.testing.RangeServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

/// The server of the tests. A socket that it left would count as a leak of the tests that use it.
class RangeServerTest {
  private static final int ROUNDS = 300;

  /// Clients whose loads are cancelled connect and close the connection without a request.
  @Test
  void aServerThatIsClosedWhileAClientConnectsLeavesNoSocket() throws Exception {
    Set<String> ports = new HashSet<>();
    for (int i = 0; i < ROUNDS; i++) {
      RangeServer server = new RangeServer();
      ports.add(":%04X ".formatted(server.port()));
      CountDownLatch connected = new CountDownLatch(1);
      Thread client =
          Thread.ofPlatform()
              .start(() -> {
                try (Socket _ = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
                  connected.countDown();
                } catch (IOException e) {
                  throw new UncheckedIOException(e);
                }
              });
      connected.await();
      server.close();
      client.join();
    }
    assertThat(OwnProcess.sockets()).noneMatch(one -> ports.stream().anyMatch(one::contains));
  }
}
