// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.PriorityQueue;
import org.junit.jupiter.api.Test;

class LinkWindowTest {
  private static final long REQUEST = 8 << 20;
  private static final int MOST = 256;

  private final LinkWindow window = new LinkWindow();

  /// Simulates requests over a link whose connections have equal shares.
  ///
  /// @param bytesPerSecond the bandwidth of the link
  /// @param most the largest window that the file allows
  /// @return the window at the end
  private int after(double bytesPerSecond, int most) {
    double perRequest = 0.03 + REQUEST / 100e6;
    double free = 0;
    double now = 0;
    PriorityQueue<double[]> ends = new PriorityQueue<>((a, b) -> Double.compare(a[0], b[0]));
    for (int i = 0; i < 4000; i++) {
      while (ends.size() < window.requests(most)) {
        // The link transfers one request after the other, and a request also takes the time of its
        // own connection.
        free = Math.max(free, now) + REQUEST / bytesPerSecond;
        ends.add(new double[] {Math.max(now + perRequest, free), now});
      }
      double[] ended = ends.remove();
      now = ended[0];
      window.ended(REQUEST, (long) ((ended[0] - ended[1]) * 1e9), true, most);
    }
    return window.requests(most);
  }

  @Test
  void aFastLinkGetsAsManyRequestsAsItNeedsAndNotManyMore() {
    // 10 GB/s × 0.114 s is 136 requests of 8 MiB.
    assertThat(after(10e9, MOST)).isBetween(136, MOST);
  }

  @Test
  void aSlowLinkGetsNoMoreThanTheFirst() {
    assertThat(after(0.1e9, MOST)).isEqualTo(LinkWindow.FIRST);
  }

  @Test
  void aFileBearsNoMoreThanItSays() {
    assertThat(after(10e9, 40)).isEqualTo(40);
    assertThat(window.requests(2)).isEqualTo(2);
  }

  @Test
  void requestsThatLeaveTheLinkRoomDoNotWidenIt() {
    for (int i = 0; i < 1000; i++) {
      window.ended(REQUEST, 1000, false, MOST);
    }
    assertThat(window.requests(MOST)).isEqualTo(LinkWindow.FIRST);
  }

  @Test
  void aRequestIsSlowThatTakesMuchLongerThanOthersOfItsSizeOrLargerOnes() {
    assertThat(window.slowNanos(REQUEST)).isEqualTo(Long.MAX_VALUE);
    for (int i = 0; i < 10; i++) {
      window.ended(REQUEST, 1_000_000_000, true, MOST);
    }
    assertThat(window.slowNanos(REQUEST)).isEqualTo(4_000_000_000L);
    assertThat(window.slowNanos(100)).isEqualTo(4_000_000_000L);
    assertThat(window.slowNanos(4 * REQUEST)).isEqualTo(16_000_000_000L);
    for (int i = 0; i < 10; i++) {
      window.ended(100, 1000, true, MOST);
    }
    assertThat(window.slowNanos(100)).as("no less than this").isEqualTo(250_000_000);
  }

  @Test
  void aLinkThatBecomesSlowerIsAskedForLess() {
    int before = after(10e9, MOST);
    for (int i = 0; i < 100; i++) {
      window.ended(REQUEST, 2_000_000_000L, true, MOST);
    }
    assertThat(window.requests(MOST)).isLessThan(before);
  }
}
