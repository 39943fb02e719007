"""The league: real graphs, simple baselines and networks beside each other, over several splits."""
