'use strict';
// Draws each .chart from the JSON beside its canvas, which has the field "bars", or "rows" and "boxes".
(() => {
  const color = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

  // Draws the line of the ceiling, whiskers from the least to the greatest repeat, and each figure behind its bar.
  const marks = data => ({
    id: 'marks',
    afterDatasetsDraw(chart) {
      const { ctx, chartArea, scales: { x, y } } = chart;
      const line = (fromX, fromY, toX, toY) => {
        ctx.beginPath();
        ctx.moveTo(fromX, fromY);
        ctx.lineTo(toX, toY);
        ctx.stroke();
      };
      ctx.save();
      ctx.lineWidth = 1;
      if (data.ceiling > 0) {
        const at = x.getPixelForValue(data.ceiling);
        ctx.strokeStyle = color('ceiling');
        ctx.setLineDash([4, 4]);
        line(at, chartArea.top, at, chartArea.bottom);
        ctx.setLineDash([]);
      }
      ctx.strokeStyle = ctx.fillStyle = color('ink');
      ctx.font = '12px ' + Chart.defaults.font.family;
      ctx.textBaseline = 'middle';
      data.bars.forEach((bar, i) => {
        const middle = y.getPixelForValue(i);
        const least = x.getPixelForValue(bar.least);
        const most = x.getPixelForValue(bar.most);
        if (most - least >= 1) {
          line(least, middle, most, middle);
          line(least, middle - 4, least, middle + 4);
          line(most, middle - 4, most, middle + 4);
        }
        ctx.fillText(bar.figure, Math.max(most, x.getPixelForValue(bar.median)) + 6, middle);
      });
      ctx.restore();
    },
  });

  const options = (unit, labels, label) => ({
    indexAxis: 'y',
    animation: false,
    maintainAspectRatio: false,
    plugins: { legend: { display: false }, tooltip: { callbacks: { label } } },
    scales: {
      x: {
        type: 'linear',
        beginAtZero: true,
        title: { display: true, text: unit, color: color('muted') },
        grid: { color: color('rule') },
        ticks: { color: color('muted'), maxTicksLimit: 8 },
      },
      y: { type: 'category', labels, grid: { display: false }, ticks: { color: color('ink'), autoSkip: false } },
    },
  });

  const bars = data => {
    const config = {
      type: 'bar',
      data: {
        labels: data.bars.map(bar => bar.label),
        datasets: [{ data: data.bars.map(bar => bar.median), backgroundColor: data.bars.map(bar => color(bar.color)) }],
      },
      options: options(data.unit, data.bars.map(bar => bar.label), item => data.bars[item.dataIndex].figure),
      plugins: [marks(data)],
    };
    // The axis leaves space for the figure behind the longest bar.
    config.options.scales.x.suggestedMax = 1.32 * Math.max(data.ceiling, ...data.bars.map(bar => bar.most));
    return config;
  };

  // Each colour is a dataset of its own in the same rows; the first colours are drawn on top.
  const timeline = data => ({
    type: 'bar',
    data: {
      labels: data.rows,
      datasets: [...new Set(data.boxes.map(box => box.color))].map((name, order) => ({
        label: name,
        order,
        grouped: false,
        minBarLength: 1,
        backgroundColor: color(name),
        data: data.boxes.filter(box => box.color === name).map(box => ({ x: [box.from, box.to], y: box.row })),
      })),
    },
    options: options('ms', data.rows, item => item.raw.x.map(at => at.toFixed(2)).join(' to ') + ' ms'),
  });

  let charts = [];
  const draw = () => {
    charts.forEach(chart => chart.destroy());
    charts = [...document.querySelectorAll('.chart')].map(element => {
      const data = JSON.parse(element.querySelector('script').textContent);
      return new Chart(element.querySelector('canvas'), data.bars ? bars(data) : timeline(data));
    });
  };
  draw();
  matchMedia('(prefers-color-scheme:dark)').addEventListener('change', draw);
})();
